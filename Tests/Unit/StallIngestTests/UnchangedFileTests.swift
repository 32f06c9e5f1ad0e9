import Foundation
import StallIngest
import StallModel
import StallQuery
import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: a file that is as it was is not opened again, and no change of one is missed.
/// Method: the test owns the clock that files' ages are compared with.
@Suite struct UnchangedFileTests {
    let directory = try! TemporaryDirectory()
    var path: String { directory("agent.sqlite") }
    var central: String { directory("central.sqlite") }

    func write(_ generator: inout ReportGenerator, _ count: Int, _ state: StallState = .ended)
        throws
    {
        let agent = try AgentStore(path: path, run: generator.run)
        for _ in 0..<count {
            try agent.record(generator.report(state: state), images: generator.images)
        }
        try agent.close()
    }

    /// - Parameter later: How much later than now the job takes it to be.
    func ingest(
        _ paths: [String]? = nil, later seconds: Int64 = 10, verifies: Bool = false,
        grouper: PlainGrouper = PlainGrouper()
    ) throws -> IngestSummary {
        let ingest = try Ingest(
            into: central, grouper: grouper,
            clock: { UnixTime(microseconds: UnixTime.now().microseconds + seconds * 1_000_000) })
        let summary = try ingest.run(paths ?? [path], verifies: verifies)
        try ingest.close()
        return summary
    }

    @Test func `a file that did not change is not opened, and one that did is`() throws {
        var generator = ReportGenerator(seed: 1)
        try write(&generator, 3)
        #expect(try ingest().addedCount == 3)
        let again = try ingest()
        #expect(again.unchangedCount == 1)
        #expect(again.files.map(\.outcome) == [.taken(added: 0, changed: 0)])
        try write(&generator, 2)
        let changed = try ingest()
        #expect(changed.unchangedCount == 0 && changed.addedCount == 2)
        #expect(try ingest().unchangedCount == 1)
    }

    @Test func `a file that is younger than two seconds is not trusted`() throws {
        var generator = ReportGenerator(seed: 2)
        try write(&generator, 3)
        for _ in 0..<3 { #expect(try ingest(later: 0).unchangedCount == 0) }
        // Looked at when it is older, it is known from then on.
        #expect(try ingest(later: 3).unchangedCount == 0)
        #expect(try ingest(later: 3).unchangedCount == 1)
    }

    @Test func `what an agent writes into its log is seen`() throws {
        var generator = ReportGenerator(seed: 3)
        let agent = try AgentStore(path: path, run: generator.run)
        for _ in 0..<4 {
            try agent.record(generator.report(state: .ended), images: generator.images)
            #expect(try ingest().addedCount == 1)
            #expect(try ingest().unchangedCount == 1)
        }
        try agent.close()
        #expect(try ingest().unchangedCount == 0)
    }

    /// Its process may end, which the file does not show.
    @Test func `a store with a stall that has not ended is looked at each time`() throws {
        var generator = ReportGenerator(seed: 4)
        try write(&generator, 1, .open)
        for _ in 0..<3 { #expect(try ingest().unchangedCount == 0) }
    }

    @Test func `another file of the same size, time and name is another file`() throws {
        var generator = ReportGenerator(seed: 5)
        try write(&generator, 2)
        #expect(try ingest().addedCount == 2)
        #expect(try ingest().unchangedCount == 1)
        let manager = FileManager.default
        let time = try #require(manager.attributesOfItem(atPath: path)[.modificationDate])
        try manager.copyItem(atPath: path, toPath: directory("copy"))
        try manager.removeItem(atPath: path)
        try manager.moveItem(atPath: directory("copy"), toPath: path)
        try manager.setAttributes([.modificationDate: time], ofItemAtPath: path)
        #expect(try ingest().unchangedCount == 0)
    }

    @Test func `a store that is to be deleted is looked at, unless a process has it open`() throws {
        var generator = ReportGenerator(seed: 6)
        try write(&generator, 2)
        _ = try ingest()
        let summary = try ingest(verifies: true)
        #expect(summary.unchangedCount == 0 && summary.files[0].isFinished)
        let agent = try AgentStore(path: path, run: generator.run)
        try agent.record(generator.report(state: .ended), images: generator.images)
        _ = try ingest(verifies: true)
        let open = try ingest(verifies: true)
        #expect(open.unchangedCount == 1 && !open.files[0].isFinished)
        try agent.close()
    }

    @Test func `a broken store is not known as imported`() throws {
        var generator = ReportGenerator(seed: 8)
        try write(&generator, 3)
        try RawDatabase(path).query("update report set duration_ns = duration_ns + 1")
        for _ in 0..<2 {
            let summary = try ingest()
            #expect(summary.skippedCount == 1 && summary.unchangedCount == 0)
        }
    }

    @Test func `a file of lines is opened once, and again when it has changed`() throws {
        let lines = directory("lines.jsonl")
        try "one".write(toFile: lines, atomically: true, encoding: .utf8)
        var opened = 0
        func look() throws -> Int {
            let ingest = try Ingest(
                into: central, grouper: PlainGrouper(),
                clock: { UnixTime(microseconds: UnixTime.now().microseconds + 10_000_000) })
            defer { try? ingest.close() }
            let summary = try ingest.run(
                [lines],
                lines: { _ throws(StoreError) in
                    opened += 1
                    return EmptyFeed()
                })
            return summary.unchangedCount
        }
        #expect(try [look(), look(), look()] == [0, 1, 1])
        #expect(opened == 1)
        try "another".write(toFile: lines, atomically: true, encoding: .utf8)
        #expect(try [look(), look()] == [0, 1])
        #expect(opened == 2)
    }

    @Test func `files that are gone are forgotten when the store is pruned`() throws {
        var generator = ReportGenerator(seed: 9)
        try write(&generator, 2)
        _ = try ingest()
        let known = "select count(*) from source_file"
        #expect(try RawDatabase(central).number(known) == 1)
        try FileManager.default.removeItem(atPath: path)
        _ = try pruneStore(path: central, startedBefore: UnixTime(microseconds: 0))
        #expect(try RawDatabase(central).number(known) == 0)
    }
}

private struct EmptyFeed: ReportFeed {
    let lineNumber = 0
    let byteCount = 0
    let hasFailed = false
    mutating func next() throws(LineFault) -> PortableRow? { nil }
}
