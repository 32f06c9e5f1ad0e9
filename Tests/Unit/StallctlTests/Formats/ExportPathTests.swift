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

/// Goal: the short ways that exports of large stores take give what the long ways give.
/// Method: reports at random, with names that need escapes, through both.
@Suite struct ExportPathTests {
    /// Reports of a store of its own, some of them with names that formats must escape.
    private func withStore(
        seed: UInt64, _ body: (_ agent: ReportStore, _ central: ReportStore) throws -> Void
    ) throws {
        try withTemporaryDirectory { directory in
            let fleet = MadeUpFleet(seed: seed)
            let path = directory.appending(path: "agent").path
            try fleet.write(fleet.runs.indices, to: path)
            let strange = directory.appending(path: "strange").path
            try writeStrangeReports(seed: seed, to: strange)
            let central = directory.appending(path: "central").path
            let ingest = try Ingest(into: central, grouper: DefaultGrouper())
            #expect(try ingest.run([path, strange]).skippedCount == 0)
            try ingest.close()
            try body(ReportStore.open(path: path), ReportStore.open(path: central))
        }
    }

    /// Reports with every kind of value, inlined functions, and names that formats must escape.
    private func writeStrangeReports(seed: UInt64, to path: String) throws {
        var generator = ReportGenerator(seed: seed)
        let store = try AgentStore(path: path, run: generator.run)
        for number in 0..<40 {
            var report = generator.report(state: .ended)
            report.loop = ["main", "a \"loop\",\r\n\u{202e}é", "=1+1", " "][number % 4]
            try store.record(report, images: generator.images)
            try store.symbolize(generator.names(of: report))
        }
        try store.close()
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `a report's line is JSON with its keys in alphabetical order`(seed: UInt64) throws {
        var generator = ReportGenerator(seed: seed)
        for number in 0..<60 {
            var report = generator.report()
            report = report.named(generator.names(of: report))
            report.cause = generator.cause()
            report.threads = number % 3 == 0 ? [generator.thread()] : []
            if number % 4 == 0 {
                report.loop = "a \"loop\"\n\u{202e}\\ \u{7f} \u{1f600} é"
                report.activity = nil
            }
            let line = try ReportText(
                report, group: report.signature(by: DefaultGrouper()).group,
                origin: number % 5 == 0
                    ? ReportOrigin(store: report.id, seq: 7, revision: 1 << 40) : nil
            ).line(images: number % 2 == 0 ? generator.images : [])
            let found = try JSONSerialization.jsonObject(with: Data(line))
            let sorted = try JSONSerialization.data(
                withJSONObject: found, options: [.sortedKeys, .withoutEscapingSlashes])
            #expect(keys(of: line) == keys(of: Array(sorted)))
        }
    }

    @Test(arguments: 1...2 as ClosedRange<UInt64>)
    func `folded lines are those of each report`(seed: UInt64) throws {
        try withStore(seed: seed) { agent, central in
            for store in [agent, central] {
                var filter = ReportFilter()
                for apps in [[], ["photos"]] {
                    filter.apps = apps
                    var stacks = FoldedStacks()
                    for report in try store.reports(filter) { stacks.add(report) }
                    for weight in FoldedStacks.Weight.allCases {
                        let times = try store.stackTimes(filter)
                        var titles = FoldedTitles()
                        var numbers = KeyNumbers(times.map(\.stack).shuffled())
                        let functions = try store.functions(ofStacks: numbers.keys) {
                            titles.add($0.title)
                        }
                        var table = FoldedTable(titles)
                        for time in times { table.add(time, functions[numbers.add(time.stack)]) }
                        var lines: [String] = []
                        table.forEachLine(weight: weight) { lines.append(String($0.dropLast())) }
                        #expect(lines == stacks.lines(weight: weight))
                    }
                }
            }
        }
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `a line of an outline is the report's`(seed: UInt64) throws {
        try withStore(seed: seed) { _, central in
            for limit in [nil, 7] as [Int?] {
                var lines = OutlineLines()
                var found: [String] = []
                try central.forEachOutline(ReportFilter(), limit: limit, withThreads: true) {
                    found.append(String(decoding: try lines.line($0, $1), as: UTF8.self))
                }
                var expected: [String] = []
                try central.forEachReport(ReportFilter(), in: .newestFirst, limit: limit) {
                    report, origin, lookup in
                    let line = try ReportText(
                        report, group: report.signature(by: DefaultGrouper()).group, origin: origin
                    ).line(images: lookup.images(ofRun: report.run.id))
                    expected.append(String(decoding: line, as: UTF8.self))
                }
                #expect(!found.isEmpty)
                #expect(found == expected)
            }
        }
    }

    @Test(arguments: [(1, false), (2, true), (3, false)] as [(UInt64, Bool)])
    func `a row of an outline is the report's`(seed: UInt64, isRaw: Bool) throws {
        try withStore(seed: seed) { _, central in
            let writer = CSVWriter(isRaw: isRaw)
            var rows = OutlineCSV()
            var found: [String] = []
            try central.forEachOutline(ReportFilter(), limit: nil, withThreads: false) {
                var row: [UInt8] = []
                try rows.append($0, $1, by: writer, to: &row)
                writer.endRow(&row)
                found.append(String(decoding: row, as: UTF8.self))
            }
            let expected = try central.reports(ReportFilter()).map { report in
                writer.row(
                    ReportCSV.fields(report, report.signature(by: DefaultGrouper()).group))
            }
            #expect(!found.isEmpty)
            #expect(found == expected)
        }
    }
}

/// The keys of a text of JSON, in their order.
private func keys(of json: [UInt8]) -> [String] {
    String(decoding: json, as: UTF8.self).matches(of: /"((?:[^"\\]|\\.)*)"\s*:/).map {
        String($0.1)
    }
}
