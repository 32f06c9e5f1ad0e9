import Foundation
import StallModel
@testable import StallArchive
@testable import StallIngest
import StallQuery
import StallStore
import Testing
import StoreTestSupport
import TestSupport

/// Goal: a large store is imported in parts, a transaction each, and wherever that ends, the next run goes on: nothing
/// is imported twice, and nothing is lost. Method: reports so large that three are all that is read ahead, and parts of
/// three; a job that is told to stop at a random look; the agent's store is the oracle.
@Suite struct PartialImportTests {
    let directory = try! TemporaryDirectory()
    var agentPath: String { directory("agent.sqlite") }
    var central: String { directory("central.sqlite") }

    /// A report that takes a third of what is read ahead.
    func largeReport(_ generator: inout ReportGenerator, _ state: StallState = .ended)
        -> StallReport
    {
        var report = generator.report(state: state)
        report.samples = [generator.sample()]
        report.samples[0].failure = String(repeating: "x", count: 700_000)
        return report
    }

    func write(_ reports: [StallReport], _ generator: ReportGenerator, to path: String) throws {
        var generator = generator
        let agent = try AgentStore(path: path, run: generator.run)
        for report in reports {
            try agent.record(report, images: generator.images)
            try agent.symbolize(generator.names(of: report))
        }
        try agent.close()
    }

    func withIngest<Answer>(_ body: (Ingest) throws -> Answer) throws -> Answer {
        let ingest = try Ingest(into: central, grouper: PlainGrouper(), partLimit: 3)
        let answer = try body(ingest)
        try ingest.close()
        return answer
    }

    func expectAll(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let taken = try ReportStore.open(path: central).reports(ReportFilter())
        let expected = try ReportStore.open(path: agentPath).reports(ReportFilter())
        #expect(
            taken.map(\.withoutNames) == expected.map(\.withoutNames),
            sourceLocation: sourceLocation)
        #expect(try checkStore(path: central).isEmpty, sourceLocation: sourceLocation)
    }

    var partialCount: Int {
        get throws { try ReportStore.open(path: central).status().partialSourceCount }
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `an import that is stopped anywhere is completed by the next ones`(seed: UInt64) throws {
        var generator = ReportGenerator(seed: seed)
        var random = SeededGenerator(seed: seed)
        let agent = try AgentStore(path: agentPath, run: generator.run)
        var open: [StallReport] = []
        var (added, ids) = (0, Set<UniqueID>())
        for _ in 0..<4 {
            for _ in 0..<7 {
                let report = largeReport(
                    &generator, Bool.random(using: &random) ? .open : .ended)
                ids.insert(report.id)
                try agent.record(report, images: generator.images)
                if report.state == .open { open.append(report) }
            }
            // Comes with the first part, and again where the import ended before the last one.
            try agent.record(
                LoopExposure(
                    run: generator.run, loop: "main", threshold: .milliseconds(250),
                    start: UnixTime(
                        microseconds: 1_700_000_000_000_000 + Int64(added) * 60_000_000),
                    watched: .seconds(60), busy: .seconds(1), readyDelay: .zero,
                    microStallCount: 1, microStallTime: .milliseconds(120),
                    lengths: LengthHistogram(counts: [7: 3])))
            // Old ones change, some of which were imported.
            for index in open.indices.shuffled(using: &random).prefix(3).sorted(by: >) {
                var report = open.remove(at: index)
                report.state = .ended
                try agent.record(report, images: generator.images)
            }
            var looks = Int.random(in: 0...12, using: &random)
            let summary = try withIngest { ingest in
                try ingest.run(
                    [agentPath],
                    isCancelled: {
                        looks -= 1
                        return looks < 0
                    })
            }
            added += summary.addedCount
            #expect(try checkStore(path: central).isEmpty)
            let isWhole = !summary.isCancelled
            #expect(try partialCount == 0 || !isWhole)
            #expect(summary.partialCount == 0 || !isWhole)
            if isWhole { try expectAll() }
        }
        let last = try withIngest { try $0.run([agentPath]) }
        added += last.addedCount
        #expect(added == ids.count)
        #expect(try partialCount == 0)
        try expectAll()
        let stretches = try RawDatabase(central).number(
            "select sum(stretch_count) from exposure_day")
        #expect(stretches == 4)
        #expect(try withIngest { try $0.run([agentPath]) }.changedCount == 0)
        try agent.close()
    }

    @Test
    func `each part moves the position, and the store is shown as partly imported until the last`()
        throws
    {
        var generator = ReportGenerator(seed: 31)
        try write((0..<9).map { _ in largeReport(&generator) }, generator, to: agentPath)
        var positions: [Int] = []
        let summary = try withIngest { ingest in
            try ingest.run(
                [agentPath],
                progress: { _ in
                    let database = try? RawDatabase(central)
                    let sql = "select ifnull(partial_seq, 0), revision from source"
                    let row = (try? database?.query(sql).first) ?? []
                    positions.append((row.first ?? nil).flatMap { Int($0) } ?? -1)
                    // Only the last part says that the source was imported.
                    #expect(positions.last == 0 || row.last == "0")
                })
        }
        #expect(summary.addedCount == 9 && summary.partialCount == 0)
        // Three parts that move it, and the last, which ends it.
        #expect(positions.count == 4 && positions.dropLast() == positions.dropLast().sorted())
        #expect(Set(positions).count == 4 && positions.last == 0)
        try expectAll()
    }

    /// What is wrong is found when its part is read.
    @Test func `what comes before a damaged report stays, and the rest comes once it is mended`()
        throws
    {
        var generator = ReportGenerator(seed: 32)
        try write((0..<9).map { _ in largeReport(&generator) }, generator, to: agentPath)
        let last = "where seq = (select max(seq) from report)"
        try RawDatabase(agentPath).query("update report set duration_ns = duration_ns + 1 \(last)")
        let summary = try withIngest { try $0.run([agentPath], verifies: true) }
        #expect(summary.skippedCount == 1 && summary.partialCount == 1)
        #expect(summary.addedCount >= 3 && summary.addedCount < 9)
        // Not to be deleted.
        #expect(!summary.files[0].isFinished)
        #expect(try partialCount == 1)
        #expect(try checkStore(path: central).isEmpty)
        try RawDatabase(agentPath).query("update report set checksum = null \(last)")
        let rest = try withIngest { try $0.run([agentPath], verifies: true) }
        #expect(rest.addedCount == 9 - summary.addedCount && rest.changedCount == 0)
        #expect(rest.files[0].isFinished)
        #expect(try partialCount == 0)
        try expectAll()
    }

    /// The two have the same newest report that both could have: what differs is in between.
    @Test func `a copy that went its own way is seen before its first part is committed`() throws {
        var generator = ReportGenerator(seed: 33)
        let copy = directory("copy.sqlite")
        try write((0..<6).map { _ in largeReport(&generator) }, generator, to: agentPath)
        try FileManager.default.copyItem(atPath: agentPath, toPath: copy)
        try RawDatabase(copy).query(
            """
            update report set id = randomblob(16), checksum = null
            where seq = (select max(seq) from report where seq < (select max(seq) from report));
            update report set revision = (select revision + 1 from source), checksum = null;
            update source set revision = revision + 1
            """)
        #expect(try withIngest { try $0.run([agentPath]) }.addedCount == 6)
        let summary = try withIngest { try $0.run([copy]) }
        #expect(summary.skippedCount == 0 && summary.addedCount == 1)
        #expect(try ReportStore.open(path: central).status().sourceCount == 2)
        #expect(try ReportStore.open(path: central).status().reportCount == 7)
        #expect(try partialCount == 0)
        #expect(try checkStore(path: central).isEmpty)
    }

    /// Method: a central store of several sources, in parts of three reports; stopped at each look.
    @Test func `a central store is imported in parts, too, with all that its sources have`() throws
    {
        var paths: [String] = []
        for seed: UInt64 in 41...44 {
            var generator = ReportGenerator(seed: seed)
            paths.append(directory("\(seed).sqlite"))
            let agent = try AgentStore(path: paths.last!, run: generator.run)
            for _ in 0..<5 {
                let report = generator.report(state: .ended)
                try agent.record(report, images: generator.images)
                try agent.symbolize(generator.names(of: report))
            }
            try agent.countLosses(2, reason: .dropped)
            try agent.close()
        }
        let middle = try Ingest(into: agentPath)
        #expect(try middle.run(paths).addedCount == 20)
        try middle.close()
        var added = 0
        for looks in 1...40 {
            var rest = looks
            let summary = try withIngest { ingest in
                try ingest.run(
                    [agentPath],
                    isCancelled: {
                        rest -= 1
                        return rest < 0
                    })
            }
            added += summary.addedCount
            if !summary.isCancelled { break }
        }
        #expect(added == 20)
        #expect(try partialCount == 0)
        #expect(try ReportStore.open(path: central).status().losses == [.dropped: 8])
        let taken = try ReportStore.open(path: central).reports(ReportFilter())
        let expected = try ReportStore.open(path: agentPath).reports(ReportFilter())
        #expect(Set(taken.map(\.withoutNames)) == Set(expected.map(\.withoutNames)))
        #expect(try checkStore(path: central).isEmpty)
    }

    /// Before, all reports of a source were read where one had changed.
    @Test func `reports that changed are found by the index of revisions`() throws {
        var generator = ReportGenerator(seed: 34)
        try write((0..<20).map { _ in generator.report() }, generator, to: agentPath)
        let plan = try RawDatabase(agentPath).query(
            "explain query plan " + IncomingReportRows.changedReports(role: .agent))
        #expect(plan.count == 1)
        #expect(
            plan[0].last??.contains("USING INDEX report_revision (source=? AND (revision,seq)>")
                == true,
            "\(plan)")
    }
}
