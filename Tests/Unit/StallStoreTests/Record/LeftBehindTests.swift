import CLinux
import Foundation
import StallModel
import Testing
import TestSupport

@testable import StallArchive
@testable import StallStore

/// Goal: a stall that a process detected and could not write, because it was killed or its heap was locked forever, is
/// in the store after the next start, once; what had been written or counted is not duplicated.
/// Method: a synthetic page of /dev/shm, as such a process leaves it.
@Suite(.serialized) struct LeftBehindTests {
    let directory = try! TemporaryDirectory()
    var generator = ReportGenerator(seed: 1)

    /// The generator's run as one of this machine whose process has ended.
    init() {
        let here = ProcessLife.current()
        (generator.run.host, generator.run.bootID) = (here.host, here.bootID)
        generator.run.pid = 1 << 22 + 1
    }

    private func leave(_ slots: [stall_open_slot], ending: UInt64 = 0) throws -> URL {
        var page = stall_process_record()
        page.magic = 0x3153_444f_574c_4c53
        page.run = generator.run.id.words
        page.ending = ending
        page.ending_ns = stall_monotonic_ns()
        withUnsafeMutableBytes(of: &page.slots) {
            $0.bindMemory(to: stall_open_slot.self).baseAddress!.update(
                from: slots, count: slots.count)
        }
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
