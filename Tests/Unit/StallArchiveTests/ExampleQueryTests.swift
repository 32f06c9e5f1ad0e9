import Foundation
import StallModel
import StallQuery
import StoreTestSupport
import TestSupport
import Testing

@testable import StallArchive
@testable import StallIngest
@testable import StallStore

/// Goal: the example queries of docs/schema.md run, do not read every report, and lead from a report to its stacks.
/// Method: the queries are read out of the document; SQLite says how it would run them; what the views unpack is
/// compared with what the store's own reader says.
@Suite struct ExampleQueryTests {
    let directory = try! TemporaryDirectory()

    private func makeCentral() throws -> (path: String, reports: [StallReport]) {
        var generator = ReportGenerator(seed: 3)
        let agent = try AgentStore(path: directory("agent"), run: generator.run)
        for number in 0..<40 {
            var report = generator.report(state: .ended)
            // As agents measure, in microseconds; the others have times that only other programs have.
            if number % 2 == 0 {
                for index in report.samples.indices {
                    report.samples[index].offset = .milliseconds(125 * index)
                    report.samples[index].weight = .milliseconds(125)
                    report.samples[index].captureCost = .microseconds(50)
                }
            }
            try agent.record(report, images: generator.images)
        }
        try agent.close()
        let ingest = try Ingest(into: directory("central"))
        #expect(try ingest.run([directory("agent")]).addedCount == 40)
        try ingest.close()
        let store = try ReportStore.open(path: directory("central"))
        return (directory("central"), try store.reports(ReportFilter()))
    }

    private static func examples() throws -> [String] {
        let text = try String(
            contentsOf: Repository.root.appending(path: "docs/schema.md"), encoding: .utf8)
        let section = try #require(
            text.split(separator: "\n## ").first {
                $0.hasPrefix("SQL queries")
            })
        let code = section.split(separator: "\n").filter {
            $0.hasPrefix("    ") && !$0.hasPrefix("    --")
        }
        return code.joined(separator: "\n").split(separator: ";").map(String.init)
            .filter { $0.contains("select") }
    }

    @Test func `no example reads every report`() throws {
        let database = try RawDatabase(makeCentral().path)
        let examples = try Self.examples()
        #expect(examples.count == 9)
        for example in examples {
            _ = try database.query(example)
            let plan = try database.query("explain query plan \(example)").compactMap(\.last!)
            #expect(!plan.isEmpty)
            #expect(
                !plan.contains { $0 == "SCAN report" || $0.hasPrefix("SCAN report ") },
                "\(example): \(plan)")
        }
        // The check can fail.
        let scan = try database.query("explain query plan select * from stall").compactMap(\.last!)
        #expect(scan.contains { $0 == "SCAN report" || $0.hasPrefix("SCAN report ") })
    }

    @Test func `the views lead from a report to its samples and their functions`() throws {
        let (path, reports) = try makeCentral()
        let database = try RawDatabase(path)
        for report in reports {
            let key = try #require(
                database.query(
                    "select source, seq from stall where id = '\(report.id.description)'"
                ).first)
            let place = "source = \(key[0]!) and seq = \(key[1]!)"
            let samples = try database.query(
                """
                select number, cast(round(offset_ms * 1e6) as integer), is_late, stack is not null
                from stall_sample where \(place) order by number
                """)
            let isASCII = report.samples.allSatisfy {
                $0.failure?.utf8.allSatisfy { $0 < 128 } ?? true
            }
            #expect(isASCII)
            #expect(
                samples
                    == report.samples.enumerated().map { number, sample in
                        [
                            "\(number)", "\(sample.offset.nanoseconds)", sample.isLate ? "1" : "0",
                            sample.locations.isEmpty ? "0" : "1",
                        ]
                    })
            for (number, sample) in report.samples.enumerated() where !sample.locations.isEmpty {
                let found = try database.query(
                    """
                    select location.offset, is_guessed
                    from stall_sample join stack_location using (stack)
                    join location on location.id = stack_location.location
                    where \(place) and number = \(number) order by position
                    """)
                #expect(
                    found
                        == sample.locations.map {
                            ["\(Int64(bitPattern: $0.offset))", $0.isGuessed ? "1" : "0"]
                        })
            }
            let day = report.start.microseconds / 86_400_000_000
            let ofDay = try database.query("select id from stall_of_day where day = \(day)")
            #expect(ofDay.contains([report.id.description]))
        }
        let frames = try database.query("select distinct id from stall_frame where position = 0")
        let titled = try database.query(
            """
            select stall.id from stall join report using (source, seq) where exists (
                select 1 from signature_frame
                where signature_frame.signature = report.signature)
            """
        )
        #expect(frames.count == titled.count)
    }
}
