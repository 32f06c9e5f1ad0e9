import Foundation
import StallAnalysis
import StallArchive
import StallFormats
import StallIngest
import StallModel
import StallQuery
import StallStore
import TestSupport
import Testing

@testable import stallctl

/// Goal: batches that are committed together are what they would be one by one, and one that is refused leaves nothing and
/// spoils nothing. Method: random stores, some of whose batches are wrong, together and alone.
@Suite struct PushedGroupTests {
    /// Rows from memory.
    struct Rows: ReportFeed {
        var rows: [PortableRow]
        private(set) var lineNumber = 0
        var byteCount: Int { 0 }
        var hasFailed: Bool { false }

        init(_ rows: [PortableRow]) { self.rows = rows }

        init(ofStore path: String) throws {
            var lines = ReportLines(bytes: try allLines(of: path).flatMap { $0 })
            rows = []
            while let row = try lines.next() { rows.append(row) }
        }

        mutating func next() -> PortableRow? {
            guard lineNumber < rows.count else { return nil }
            lineNumber += 1
            return rows[lineNumber - 1]
        }
    }

    /// Everything of a new store, as one batch.
    private func batch(
        seed: UInt64, app: String = "photos", in directory: URL,
        change: (inout [PortableRow]) -> Void = { _ in }
    ) throws -> PushedBatch {
        let path = directory.appending(path: "agent-\(seed)").path
        var writer = RowWriter(seed: seed, app: app)
        try writer.write(30, to: path)
        let source = try #require(ReportStore.open(path: path).changeSources().first)
        var rows = try Rows(ofStore: path).rows
        change(&rows)
        return PushedBatch(
            store: source.store, from: 1, through: source.revision, rows: Rows(rows))
    }

    private func wrong(_ batch: PushedBatch) -> PortableRow {
        let generator = ReportGenerator(seed: 1)
        return .loss(
            PortableLoss(
                store: batch.store, revision: 1, run: generator.run, reason: .dropped, count: -1))
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `batches committed together are as batches taken alone`(seed: UInt64) throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            var batches = try (0..<7 as Range<UInt64>).map {
                try batch(seed: seed * 10 + $0, app: "app\($0 % 2)", in: directory)
            }
            // A gap, a row that no store takes in the middle of a batch, the first batch again, and no position at all.
            batches[1].from = 5
            var rows = try #require(batches[3].rows as? Rows).rows
            rows.insert(wrong(batches[3]), at: rows.count / 2)
            batches[3].rows = Rows(rows)
            batches.append(batches[0])
            batches[5].from = 0
            let together = try Ingest(into: path("together"), grouper: DefaultGrouper())
            let found = try together.take(batches).map { try $0.get() }
            let again = try together.take(batches).map { try $0.get() }
            try together.close()
            let alone = try Ingest(into: path("alone"), grouper: DefaultGrouper())
            let expected = try batches.map { try alone.take($0) as PushedBatchResult }
            try alone.close()
            #expect(found == expected)
            #expect(found[1] == .gap(through: 0))
            guard case .refused(let refused) = found[3] else {
                Issue.record("\(found[3])")
                return
            }
            #expect(refused.count == 1 && refused.lines[0].line > 1)
            for (first, second) in zip(found, again) {
                guard case .taken(let taken) = first, case .taken(let later) = second else {
                    #expect(first == second)
                    continue
                }
                #expect(later.through == taken.through && later.added == 0)
            }
            let difference = try StoreContent(path("together"))
                .difference(from: StoreContent(path("alone")))
            #expect(difference == [])
            #expect(try checkStore(path: path("together")).isEmpty)
        }
    }

    /// What one batch runs into is no reason to refuse its neighbours again and again.
    @Test func `a batch that the store fails on keeps no other out`() throws {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "central").path
            let ingest = try Ingest(into: path, grouper: DefaultGrouper())
            let connection = try Connection(to: path, as: path, .readWrite)
            try connection.execute(
                """
                create unique index poison on process_run (app) where app = 'poison';
                insert into process_run
                    (uuid, app, version, host, pid, boot_id, start_ticks, started_us)
                values (zeroblob(16), 'poison', '1', 'h', 1, 'b', 1, 1)
                """)
            try connection.close()
            let batches = [
                try batch(seed: 1, in: directory),
                try batch(seed: 2, app: "poison", in: directory),
                try batch(seed: 3, in: directory),
            ]
            let results = ingest.take(batches)
            try ingest.close()
            guard case .success(.taken(let first)) = results[0],
                case .failure(.sqlite(_, _, let reason)) = results[1],
                case .success(.taken(let last)) = results[2]
            else {
                Issue.record("\(results)")
                return
            }
            #expect(first.added > 0 && last.added > 0 && reason.contains("UNIQUE"))
        }
    }

    @Test func `each batch is answered when a store is gone`() throws {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "central").path
            let ingest = try Ingest(into: path, grouper: DefaultGrouper())
            try ingest.close()
            let results = ingest.take(try (1...3).map { try batch(seed: $0, in: directory) })
            #expect(results.count == 3)
            for result in results {
                guard case .failure(.cannotOpen) = result else {
                    Issue.record("\(result)")
                    return
                }
            }
        }
    }
}
