import Foundation
import StallIngest
import StallModel
import StoreTestSupport
import TestSupport
import Testing

@testable import StallStore

/// Goal: which of a stall's records count does not depend on the order in which stores come.
/// Method: seeded histories of a store and its clones, each of which goes its own way with the same stalls: still open, of a
/// process that is gone or not, a hang, or ended at one of few durations. All files are imported in several orders, some
/// of them twice, some by way of another central store; what is then there is worked out from the records alone.
@Suite struct SameReportOrderTests {
    let directory = try! TemporaryDirectory()

    /// A record of a stall, in one file.
    struct Record: Hashable {
        var id: String
        var state: Int
        var seconds: Int
        /// The rest of the record's content, as a part of its CPU time. No two records differ in it by chance.
        var content = 0
    }

    /// The records that a store keeps: each version that ended, else the longest hang, else the longest that is open.
    private func expected(_ records: [Record]) -> [Record] {
        Dictionary(grouping: records, by: \.id).values.flatMap { records -> [Record] in
            let ended = Set(records.filter { $0.state == 1 })
            if !ended.isEmpty { return Array(ended) }
            return [
                records.max {
                    ($0.state, $0.seconds, $0.content) < ($1.state, $1.seconds, $1.content)
                }!
            ]
        }
    }

    private func stored(_ path: String) throws -> [Record] {
        try RawDatabase(path).query(
            "select hex(id), state, duration_ns / 1000000000, cpu_ns from report"
        ).map {
            Record(id: $0[0]!, state: Int($0[1]!)!, seconds: Int($0[2]!)!, content: Int($0[3]!)!)
        }
    }

    private func write(_ random: inout SeededGenerator) throws -> (files: [String], [Record]) {
        var generator = ReportGenerator(seed: random.next())
        let count = Int.random(in: 1...4, using: &random)
        let first = directory("0.sqlite")
        let store = try AgentStore(path: first, run: generator.run)
        for _ in 0..<count {
            try store.record(generator.report(state: .open), images: generator.images)
        }
        try store.close()
        let files = (0..<Int.random(in: 2...4, using: &random)).map { directory("\($0).sqlite") }
        for file in files.dropFirst() {
            try FileManager.default.copyItem(atPath: first, toPath: file)
        }
        var records: [Record] = []
        let isGone = Bool.random(using: &random)
        for file in files {
            let database = try RawDatabase(file)
            // A clone that was given another identity; its process, or that of the original, is gone, or another machine's.
            try database.query(
                """
                update source set store = randomblob(16);
                update process_run set host = '\(isGone ? ProcessLife.current().host : "elsewhere")',
                    boot_id = 'an earlier one', checksum = null
                """)
            for row in try database.query("select seq, hex(id) from report") {
                let state = Int.random(in: 0...2, using: &random)
                let seconds = Int.random(in: 1...3, using: &random)
                let content = Int.random(in: 0...1, using: &random)
                try database.query(
                    """
                    update report set state = \(state), duration_ns = \(seconds) * 1000000000,
                        cpu_ns = \(content), delayed_ns = null, checksum = null where seq = \(row[0]!)
                    """)
                let isClosed = state == 0 && isGone
                records.append(
                    Record(
                        id: row[1]!, state: isClosed ? 2 : state, seconds: seconds,
                        content: content))
            }
        }
        return (files, records)
    }

    private func ingest(_ files: [String], into central: String) throws {
        let ingest = try Ingest(into: central, grouper: PlainGrouper())
        for file in files { #expect(try ingest.run([file]).skippedCount == 0) }
        try ingest.close()
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `a stall that several stores have counts the same in any order`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let (files, records) = try write(&random)
        let truth = expected(records).map { "\($0)" }.sorted()
        for round in 0..<5 {
            let central = directory("central-\(round).sqlite")
            var order = files.shuffled(using: &random)
            order += order.filter { _ in Bool.random(using: &random) }
            if round > 2 {
                let cut = Int.random(in: 1...order.count, using: &random)
                let between = directory("between-\(round).sqlite")
                try ingest(Array(order[..<cut]), into: between)
                order = [between] + order[cut...]
                order.shuffle(using: &random)
            }
            try ingest(order, into: central)
            #expect(try stored(central).map { "\($0)" }.sorted() == truth, "seed \(seed), \(order)")
            #expect(try checkStore(path: central).isEmpty)
        }
    }
}
