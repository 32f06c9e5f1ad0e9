// Keeps hung tests in a store: as open stalls of the process with the tests, until they end or their process does.

internal import Foundation
internal import StallModel
internal import StallStore

struct HangStore {
    /// The names in reports.
    struct App {
        /// Nil: the test bundle's.
        var name: String?
        var version: String?
    }

    private struct Entry {
        var process: Int32
        var isStreamed: Bool
        var report: StallReport
    }

    private let path: String
    private let app: App
    private let limit: Duration
    /// By the process: a store is written in the name of one.
    private var stores: [Int32: AgentStore] = [:]
    private var runs: [Int32: ProcessRun] = [:]
    /// Not ended, by the test's id.
    private var open: [String: Entry] = [:]
    /// Why the rest is not stored.
    private(set) var failure: StoreError?

    init(path: String, app: App, limit: Duration) {
        (self.path, self.app, self.limit) = (path, app, limit)
    }

    /// Adds the tests of a report, or brings them up to date.
    mutating func record(_ report: HangReport, now: UnixTime) {
        for test in report.tests {
            let process = report.processes.first { $0.id == test.process } ?? report.processes.first
            guard let process else { continue }
            let run = run(of: process, now)
            let known = open[test.description.id].flatMap { $0.process == process.id ? $0 : nil }
            let start =
                known?.report.start
                ?? UnixTime(
                    microseconds: now.microseconds - report.duration(of: test).nanoseconds / 1000)
            let stall = report.stall(
                of: test, in: run, id: known?.report.id ?? UniqueID(version7At: start),
                start: start, limit: limit)
            open[test.description.id] = Entry(
                process: process.id, isStreamed: process.isStreamed, report: stall)
            write(stall, process.id, images: process.images)
        }
    }

    var isEmpty: Bool { open.isEmpty }

    /// Closes the reports of tests that have ended since.
    ///
    /// - Parameter hasEnded: Given the test's id, its process, and whether that has an event stream.
    mutating func close(now: UnixTime, where hasEnded: (String, Int32, Bool) -> Bool) {
        for (id, entry) in open where hasEnded(id, entry.process, entry.isStreamed) {
            close(entry, StallOutcome(.ended, .recovered), now)
            open[id] = nil
        }
    }

    /// Closes all, when no process is left.
    ///
    /// - Parameter wereKilled: By stallctl. Otherwise a test of XCTest may have ended: it does not say so.
    mutating func closeAll(now: UnixTime, wereKilled: Bool) {
        for entry in open.values {
            switch (wereKilled, entry.isStreamed) {
            case (true, _): close(entry, StallOutcome(.hang, .killed), now)
            case (false, true): close(entry, StallOutcome(.hang), now)
            case (false, false): close(entry, StallOutcome(.ended, .exit), now)
            }
        }
        open = [:]
        for store in stores.values { try? store.close() }
        stores = [:]
    }

    private mutating func close(_ entry: Entry, _ outcome: StallOutcome, _ now: UnixTime) {
        var report = entry.report
        report.duration = max(
            report.duration, .microseconds(now.microseconds - report.start.microseconds))
        report.outcome = outcome
        write(report, entry.process, images: [])
    }

    private mutating func write(_ report: StallReport, _ process: Int32, images: [Image]) {
        guard failure == nil else { return }
        do throws(StoreError) {
            let store = try store(of: report.run)
            try store.record(report, images: images)
            try store.symbolize(report.names)
        } catch {
            failure = error
        }
    }

    private mutating func store(of run: ProcessRun) throws(StoreError) -> AgentStore {
        if let store = stores[run.pid] { return store }
        let store = try AgentStore(path: path, run: run)
        try store.closeAbandoned()
        stores[run.pid] = store
        return store
    }

    private mutating func run(of process: HangReport.ExaminedProcess, _ now: UnixTime) -> ProcessRun
    {
        if let run = runs[process.id], run.startTicks == process.startTicks { return run }
        let machine = ProcessLife.current()
        let model = MachineModel.current()
        let bundle = process.command.split(separator: "/").last.map(String.init) ?? "tests"
        let name = bundle.hasSuffix(".xctest") ? String(bundle.dropLast(".xctest".count)) : bundle
        let run = ProcessRun(
            id: UniqueID(version7At: now), app: app.name ?? name, version: app.version ?? "0",
            buildID: process.buildID, host: machine.host, pid: process.id,
            bootID: machine.bootID, startTicks: process.startTicks, started: now,
            os: model.os, device: model.device)
        runs[process.id] = run
        stores[process.id] = nil
        return run
    }
}
