import CLinux
import Foundation
import StallModel
import StallQuery
import Testing
import StoreTestSupport
import TestSupport

@testable import StallArchive
@testable import StallIngest
@testable import StallStore

/// Goal: a stall that a process detected and could not write, because it was killed or its heap was locked forever, is
/// in the store after the next start, once; what had been written or counted is not duplicated.
/// Method: a synthetic page of /dev/shm, as such a process leaves it.
@Suite(.serialized) struct LeftBehindTests {
    let directory = try! TemporaryDirectory()
    /// A run of its own: the page's name has its identifier, and other tests ask for the pages of their runs.
    var generator = ReportGenerator(seed: .random(in: 1 << 32...1 << 40))

    /// The generator's run as one of this machine whose process has ended.
    init() {
        let here = ProcessLife.current()
        (generator.run.host, generator.run.bootID) = (here.host, here.bootID)
        generator.run.pid = 1 << 22 + 1
    }

    private func page(_ slots: [stall_open_slot], ending: UInt64 = 0) -> stall_process_record {
        var page = stall_process_record()
        page.magic = 0x3153_444f_574c_4c53
        page.run = generator.run.id.words
        page.ending = ending
        page.ending_ns = stall_monotonic_ns()
        withUnsafeMutableBytes(of: &page.slots) {
            $0.bindMemory(to: stall_open_slot.self).baseAddress!.update(
                from: slots, count: slots.count)
        }
        return page
    }

    private func leave(_ slots: [stall_open_slot], ending: UInt64 = 0) throws -> URL {
        let page = page(slots, ending: ending)
        let url = URL(filePath: "/dev/shm/stallwatch-\(generator.run.id)")
        try withUnsafeBytes(of: page) { try Data($0).write(to: url) }
        return url
    }

    private func slot(
        millisecondsAgo began: UInt64, seen: UInt64, ended: UInt64? = nil, report: UniqueID? = nil
    ) -> stall_open_slot {
        let now = stall_monotonic_ns()
        var slot = stall_open_slot()
        slot.began_ns = now - began * 1_000_000
        slot.seen_ns = now - seen * 1_000_000
        slot.ended_ns = ended.map { now - $0 * 1_000_000 } ?? 0
        slot.report = report?.words ?? (0, 0)
        slot.facts.threshold_ns = 250_000_000
        withUnsafeMutableBytes(of: &slot.facts.loop) { $0.copyBytes(from: "main".utf8) }
        return slot
    }

    /// What the store has after another process has opened it.
    private func reportsAfterNextStart() throws -> [StallReport] {
        let path = directory("agent.sqlite")
        let next = try AgentStore(path: path, run: ReportGenerator(seed: 9).run)
        try next.closeAbandoned()
        try next.close()
        return try ReportStore.open(path: path).reports(ReportFilter())
    }

    @Test func `what could not be written is there after the next start, once`() throws {
        try AgentStore(path: directory("agent.sqlite"), run: generator.run).closeAbandoned()
        let slots = [
            slot(millisecondsAgo: 900, seen: 300),
            slot(millisecondsAgo: 2000, seen: 1500, ended: 1200),
        ]
        // The page outlives the first reader, as it does for one that opens the store at the same time.
        for _ in 1...2 {
            let page = try leave(slots)
            let reports = try reportsAfterNextStart().sorted { $0.duration < $1.duration }
            #expect(!FileManager.default.fileExists(atPath: page.path))
            #expect(reports.map(\.state) == [.hang, .ended])
            #expect(reports.map(\.ending) == [.killed, .recovered])
            #expect(reports.map(\.duration.milliseconds) == [600, 800])
            #expect(reports.allSatisfy { $0.run.id == generator.run.id && $0.loop == "main" })
            #expect(reports.allSatisfy { $0.threshold == .milliseconds(250) && $0.samples.isEmpty })
            let age = UnixTime.now().microseconds - (reports.first?.start.microseconds ?? 0)
            #expect(age >= 900_000)
        }
    }

    /// Leaves a copy beside the store, as the copying thread writes it, and nothing in /dev/shm.
    private func leaveCopies(_ pages: [stall_process_record]) throws -> URL {
        let (monitor, (high, low)) = (Int32(7), generator.run.id.words)
        let store = directory("agent.sqlite")
        #expect(stall_page_copy_prepare(monitor, high, low, store))
        let page = UnsafeMutablePointer<stall_process_record>.allocate(capacity: 1)
        defer { page.deallocate() }
        let isEnded = DispatchSemaphore(value: 0)
        Thread {
            stall_page_copy_run(monitor)
            isEnded.signal()
        }.start()
        page.initialize(to: pages[0])
        stall_page_copy_follow(monitor, page)
        for next in pages {
            page.initialize(to: next)
            stall_page_copy_wake(monitor)
            usleep(50_000)
        }
        stall_page_copy_end(monitor, false)
        isEnded.wait()
        return URL(filePath: store + "-open-\(generator.run.id)")
    }

    @Test func `a copy beside the store is read where the page is gone`() throws {
        try AgentStore(path: directory("agent.sqlite"), run: generator.run).closeAbandoned()
        let slots = [slot(millisecondsAgo: 900, seen: 300)]
        let copy = try leaveCopies([page([]), page(slots), page(slots, ending: 4)])
        #expect(FileFacts(copy.path)?.size == 8192)
        let reports = try reportsAfterNextStart()
        #expect(reports.map(\.ending) == [.crash])
        #expect(reports.allSatisfy { $0.duration >= .milliseconds(900) })
        #expect(!FileManager.default.fileExists(atPath: copy.path))
    }

    @Test(arguments: ["torn", "older torn", "both torn", "another boot", "short", "link"])
    func `a copy that is not whole is not believed`(damage: String) throws {
        try AgentStore(path: directory("agent.sqlite"), run: generator.run).closeAbandoned()
        let slots = [slot(millisecondsAgo: 900, seen: 300)]
        let copy = try leaveCopies([page(slots), page(slots, ending: 4)])
        var bytes = try Data(contentsOf: copy)
        let newest = (0..<2).max { bytes[$0 * 4096] < bytes[$1 * 4096] }!
        switch damage {
        case "torn": bytes[newest * 4096 + 200] ^= 1
        case "older torn": bytes[(1 - newest) * 4096 + 200] ^= 1
        case "both torn": for part in 0..<2 { bytes[part * 4096 + 200] ^= 1 }
        case "another boot": for part in 0..<2 { bytes[part * 4096 + 17] ^= 1 }
        case "short": bytes = bytes.prefix(3000)
        default: break
        }
        try FileManager.default.removeItem(at: copy)
        let target = damage == "link" ? directory("elsewhere") : copy.path
        try bytes.write(to: URL(filePath: target))
        if damage == "link" { symlink(target, copy.path) }
        // Of the two parts one is enough.
        let expected: [StallEnding] = ["torn", "older torn"].contains(damage) ? [.crash] : []
        #expect(try reportsAfterNextStart().compactMap(\.ending) == expected)
    }

    @Test mutating func `what was written or counted is not there twice`() throws {
        let store = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        let (open, ended) = (generator.report(state: .open), generator.report(state: .ended))
        try store.record(open, images: generator.images)
        try store.record(ended, images: generator.images)
        let counted = UniqueID((STALL_REPORT_COUNTED, STALL_REPORT_COUNTED))
        let page = try leave([
            slot(millisecondsAgo: 900, seen: 100, report: open.id),
            slot(millisecondsAgo: 900, seen: 100, ended: 200, report: ended.id),
            slot(millisecondsAgo: 900, seen: 100, report: counted),
        ])
        let reports = try reportsAfterNextStart()
        #expect(!FileManager.default.fileExists(atPath: page.path))
        #expect(Set(reports.map(\.id)) == [open.id, ended.id] && reports.count == 2)
        #expect(reports.first { $0.id == ended.id }?.duration == ended.duration)
    }

    /// Beside a file is what its owner put there: a page that says that the stall lasted for a minute.
    @Test(arguments: ["a store that says to be the same", "a central store", "its own"])
    mutating func `only a report's own store tells how it ended`(other: String) throws {
        var report = generator.report(state: .open)
        report.duration = .milliseconds(800)
        let store = try AgentStore(path: directory("agent.sqlite"), run: generator.run)
        try store.record(report, images: generator.images)
        try store.close()
        // Alive, as far as this machine can see, until the page is there.
        try RawDatabase(directory("agent.sqlite")).query(
            "update process_run set host = 'elsewhere', checksum = null")
        func take(_ name: String, into central: String) throws {
            let ingest = try Ingest(into: directory(central))
            #expect(try ingest.run([directory(name)]).skippedCount == 0)
            try ingest.close()
        }
        func found(_ central: String) throws -> StallReport? {
            try ReportStore.open(path: directory(central)).reports(ReportFilter()).first
        }
        try take("agent.sqlite", into: "central.sqlite")
        try take("agent.sqlite", into: "other.sqlite")
        for name in ["agent.sqlite", "central.sqlite", "other.sqlite"] {
            try RawDatabase(directory(name)).query(
                "update process_run set host = '\(generator.run.host)', checksum = null")
        }
        let stranger = ReportGenerator(seed: 2)
        try AgentStore(path: directory("false.sqlite"), run: stranger.run).close()
        try RawDatabase(directory("false.sqlite")).query(
            "update source set store = (select x'\(try identity(of: "agent.sqlite"))')")
        let page = try leave([
            slot(millisecondsAgo: 61_000, seen: 500, ended: 1000, report: report.id)
        ])
        defer { try? FileManager.default.removeItem(at: page) }
        switch other {
        case "its own": break
        case "a central store": try take("other.sqlite", into: "central.sqlite")
        default: try take("false.sqlite", into: "central.sqlite")
        }
        #expect(try found("central.sqlite")?.state == .open)
        #expect(try found("central.sqlite")?.duration == .milliseconds(800))
        try take("agent.sqlite", into: "central.sqlite")
        #expect(try found("central.sqlite")?.state == .ended)
        #expect(try found("central.sqlite")?.duration == .milliseconds(60_000))
    }

    private func identity(of name: String) throws -> String {
        try #require(
            RawDatabase(directory(name)).query("select hex(store) from source").first?.first ?? nil)
    }

    @Test func `numbers that make no sense are no stalls`() throws {
        try AgentStore(path: directory("agent.sqlite"), run: generator.run).closeAbandoned()
        var future = slot(millisecondsAgo: 0, seen: 0)
        future.began_ns = .max - 5
        var backwards = slot(millisecondsAgo: 100, seen: 500)
        backwards.ended_ns = 1
        var unjudged = slot(millisecondsAgo: 900, seen: 100)
        unjudged.facts.verdict = 77
        var endless = slot(millisecondsAgo: 900, seen: 100)
        endless.facts.threshold_ns = .max
        var nameless = slot(millisecondsAgo: 900, seen: 100)
        withUnsafeMutableBytes(of: &nameless.facts.loop) {
            $0.copyBytes(from: [UInt8](repeating: 0xff, count: 48))
        }
        _ = try leave([future, backwards, unjudged, endless, nameless], ending: 99)
        let reports = try reportsAfterNextStart()
        #expect(reports.map(\.duration.milliseconds) == [800])
        #expect(reports.map(\.loop.unicodeScalars.count) == [48])
    }
}
