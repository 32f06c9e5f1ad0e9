import Foundation
import StallAnalysis
import StallArchive
import StallFormats
import StallModel
import TestSupport
import Testing

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
            let central = directory.appending(path: "central").path
            let ingest = try Ingest(into: central, grouper: DefaultGrouper())
            #expect(try ingest.run([path]).skippedCount == 0)
            try ingest.close()
            try body(ReportStore.open(path: path), ReportStore.open(path: central))
        }
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `a report's line is the encoder's`(seed: UInt64) throws {
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
            let row = ReportRow(
                report, images: number % 2 == 0 ? generator.images : [],
                origin: number % 5 == 0
                    ? ReportOrigin(store: report.id, seq: 7, revision: 1 << 40) : nil)
            let line = try String(decoding: row.line(quoted: JSONLines.text), as: UTF8.self)
            #expect(try line == JSONLines.line(row))
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
                        let functions = try store.functions(
                            ofStacks: Array(Set(times.map(\.stack)))
                        ) { titles.add($0.title) }
                        var table = FoldedTable(titles)
                        for time in times { table.add(time, functions[time.stack]) }
                        var lines: [String] = []
                        table.forEachLine(weight: weight) { lines.append(String($0.dropLast())) }
                        #expect(lines == stacks.lines(weight: weight))
                    }
                }
            }
        }
    }

    @Test(arguments: 1...2 as ClosedRange<UInt64>)
    func `a report's outline says what the report says`(seed: UInt64) throws {
        try withStore(seed: seed) { _, central in
            for limit in [nil, 7] as [Int?] {
                var names: [String] = []
                var found: [[String]] = []
                try central.forEachOutline(
                    ReportFilter(), limit: limit,
                    number: {
                        names.append($0.title)
                        return Int32(names.count - 1)
                    }
                ) { outline, functions in
                    let row = ReportRow(outline.report, group: outline.group)
                    found.append(
                        [row.id, row.start, row.signature, row.title, row.wait ?? ""] + row.frames
                            + ["\(outline.sampleCount)"] + functions.map { names[Int($0)] })
                }
                let expected = try central.reports(ReportFilter(), limit: limit).map { report in
                    let row = ReportRow(report, images: [])
                    let heaviest = report.samples.filter { !$0.isLate && !$0.frames.isEmpty }
                        .max { $0.weight < $1.weight }
                    return [row.id, row.start, row.signature, row.title, row.wait ?? ""]
                        + row.frames + ["\(report.samples.count)"]
                        + (heaviest?.frames ?? []).map(\.title)
                }
                #expect(found == expected)
            }
        }
    }
}
