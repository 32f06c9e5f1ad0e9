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

/// Goal: a store that travels as lines is, where it arrives, what it would be if its file had been ingested.
/// Method: random stores both ways; lines twice, shuffled, in parts, and mixed with the file.
@Suite struct StoreLinesTests {
    private func expectSame(
        _ found: String, _ expected: String, withNamers: Bool = true, _ comment: Comment? = nil,
        location: SourceLocation = #_sourceLocation
    ) throws {
        let difference = try StoreContent(found, withNamers: withNamers)
            .difference(from: StoreContent(expected, withNamers: withNamers))
        #expect(difference == [], comment, sourceLocation: location)
        #expect(try checkStore(path: found).isEmpty, comment, sourceLocation: location)
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `an agent's store travels as lines`(seed: UInt64) throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            var writer = RowWriter(seed: seed)
            try writer.write(60, to: path("agent"))
            try ingest([path("agent")], into: path("direct"))
            var lines = try allLines(of: path("agent"))
            try ingest(lines: lines, into: path("lines"))
            try expectSame(path("lines"), path("direct"))
            // Twice, and then the file.
            try ingest(lines: lines, into: path("lines"))
            try ingest([path("agent")], into: path("lines"))
            try expectSame(path("lines"), path("direct"), "twice")
            // The file first.
            try ingest(lines: lines, into: path("direct"))
            try expectSame(path("direct"), path("lines"), "file first")
            lines.shuffle(using: &writer.generator.random)
            try ingest(lines: lines, into: path("shuffled"))
            try expectSame(path("shuffled"), path("direct"), "shuffled")
            for part in 0..<3 {
                let some = lines.indices.filter { $0 % 3 == part }.map { lines[$0] }
                try ingest(lines: some, into: path("parts"))
            }
            try expectSame(path("parts"), path("direct"), "in parts")
        }
    }

    @Test(arguments: 11...13 as ClosedRange<UInt64>)
    func `lines of an older state change nothing`(seed: UInt64) throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            var writer = RowWriter(seed: seed)
            try writer.write(40, to: path("agent"), state: nil)
            let before = try allLines(of: path("agent"))
            try writer.write(40, to: path("agent"))
            let after = try allLines(of: path("agent"))
            try ingest(lines: after, into: path("direct"))
            try ingest(lines: before, into: path("late"))
            try ingest(lines: after, into: path("late"))
            try ingest(lines: before, into: path("late"))
            try expectSame(path("late"), path("direct"))
        }
    }

    @Test(arguments: 21...24 as ClosedRange<UInt64>)
    func `a central store of several sources travels as lines, also pruned`(seed: UInt64) throws {
        try withTemporaryDirectory { directory in
            func path(_ name: String) -> String { directory.appending(path: name).path }
            var agents: [String] = []
            for number in 0..<3 as Range<UInt64> {
                var writer = RowWriter(seed: seed * 10 + number, app: "app\(number % 2)")
                agents.append(path("agent\(number)"))
                try writer.write(40, to: agents.last!)
            }
            try ingest(agents, into: path("regional"))
            try ingest([path("regional")], into: path("direct"))
            var lines = try allLines(of: path("regional"))
            try ingest(lines: lines, into: path("lines"))
            // Whose names a place has is better known to the lines: each says it.
            try expectSame(path("lines"), path("direct"), withNamers: false)
            lines.shuffle()
            try ingest(lines: lines, into: path("lines"))
            try ingest(lines: lines, into: path("shuffled"))
            try expectSame(path("shuffled"), path("direct"), withNamers: false)
            try expectSame(path("lines"), path("direct"), withNamers: false)
            // Half of its reports go; their watched time stays.
            let middle = try #require(
                ReportStore.open(path: path("regional")).reports(ReportFilter())
                    .map(\.start).sorted { $0.microseconds < $1.microseconds }.dropFirst(10).first)
            _ = try pruneStore(
                path: path("regional"), keeping: Retention(reportsSince: middle),
                grouper: DefaultGrouper())
            try ingest([path("regional")], into: path("pruned"))
            try ingest(lines: allLines(of: path("regional")), into: path("pruned lines"))
            try expectSame(path("pruned lines"), path("pruned"), withNamers: false)
        }
    }

    @Test func `unknown kinds and later versions are left out and counted`() throws {
        try withTemporaryDirectory { directory in
            let central = directory.appending(path: "central").path
            let lines = [
                #"{"schema":"stallctl.report/2","id":7}"#, #"{"schema":"stallctl.weather/1"}"#,
                #"{"schema":"stallctl.weather/1","deep":{"a":[1]}}"#,
                #"{"schema":"other/1"}"#, #"{"schema":"stallctl.report/x"}"#,
            ].map { Array(($0 + "\n").utf8) }
            let summary = try ingest(lines: lines, into: central)
            #expect(summary.unknownLines == ["stallctl.report/2": 1, "stallctl.weather/1": 2])
            #expect(summary.lineFaultCount == 2)
            let sentence = IngestView.sentence(for: summary, store: "c")
            #expect(
                sentence.contains(
                    "left out 3 lines of unknown kinds (stallctl.report/2, stallctl.weather/1)"))
        }
    }
}
