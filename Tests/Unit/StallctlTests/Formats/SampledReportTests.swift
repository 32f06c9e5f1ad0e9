import Foundation
import StallAnalysis
import StallArchive
import StallFormats
import StallIngest
import StallModel
import StallQuery
import TestSupport
import Testing

@testable import stallctl

/// Goal: reports of other programs are shown as what they are: a profiler's samples are no stall, and a duration, a threshold or a
/// way of capture that was not recorded is not given as a number.
/// Method: reports made by hand without these, through each view; and the built program on a store of them.
@Suite struct SampledReportTests {
    /// As a program other than the agent gives it: without threshold, CPU time and how the stacks were captured.
    private func foreign(
        _ number: UInt64 = 1, verdict: StallVerdict = .sampled, lasting milliseconds: Int = 0,
        weight: Int = 0
    ) -> StallReport {
        let stacks = [SampleReports.computing, SampleReports.waiting, SampleReports.waiting]
        var report = SampleReports.report(
            number, verdict: verdict, startingAfter: Int64(number), lasting: milliseconds,
            samples: stacks.enumerated().map { index, frames in
                var sample = SampleReports.sample(at: index * weight, for: weight, frames)
                (sample.method, sample.captureCost) = (nil, .zero)
                return sample
            })
        (report.cpuTime, report.threshold, report.detectionDelay) = (.zero, .zero, .zero)
        return report
    }

    private func text(_ report: StallReport) -> String {
        ReportView(report: report, stackLimit: 3, terminal: .plain).lines.joined(separator: "\n")
    }

    private func expectNoInventedFacts(_ text: String) {
        for words in [
            "0.0 ms", "0 %", "threshold", "detected", "CPU", "No stack was captured",
            "without a stack",
        ] {
            #expect(!text.contains(words), "\(words) in:\n\(text)")
        }
    }

    @Test func `a profiler's samples are no stall`() {
        let text = text(foreign())
        #expect(text.hasPrefix("main: 3 samples of a profiler on "))
        #expect(!text.contains("stalled for") && !text.contains("the app's own delay"))
        #expect(text.contains("whether it stalled is unknown (sampled)"))
        #expect(text.contains("3 samples, waitForWorker() on the stack of 2."))
        // Without weights the stack of most samples is the first.
        #expect(text.contains("Stack 1: 2 samples\n"))
        expectNoInventedFacts(text)
    }

    @Test func `a profile's length and weights are shown where they are known`() {
        let text = text(foreign(lasting: 300, weight: 100))
        #expect(text.hasPrefix("main: 3 samples of a profiler over 300 ms on "))
        #expect(text.contains("Stack 1: 2 samples, 200 ms (67 %), first seen at 100 ms"))
        #expect(!text.contains("threshold") && !text.contains("CPU"))
    }

    @Test(arguments: [
        (StallState.ended, "main stalled for an unknown time on "),
        (.open, "main stalled so far for an unknown time since "),
        (.hang, "main hung for an unknown time on "),
    ])
    func `a stall without a duration lasted for an unknown time`(
        state: StallState, sentence: String
    ) {
        var report = foreign(verdict: .stalled)
        report.state = state
        report.cause = StallCause(.network, confidence: 0.95, shares: [CauseShare(.network, 1)])
        let text = text(report)
        #expect(text.hasPrefix(sentence))
        #expect(text.contains("main waited an unknown time for the network"))
        expectNoInventedFacts(text)
    }

    @Test func `why names stacks without weights`() {
        let view = WhyView(explanation: Explanation(foreign()), terminal: .plain)
        let text = view.lines.joined(separator: "\n")
        #expect(text.contains("\n2 samples\n"))
        expectNoInventedFacts(text)
    }

    @Test func `a list has unknown durations, and data the number 0`() throws {
        let report = foreign()
        let listing = SampleReports.listing(of: report)
        let row = ListView(listing: listing, terminal: .plain).lines[1]
        #expect(row.contains("  unknown  ") && row.contains("  sampled  "))
        let data = try JSONLines.line(listing.rows[0])
        #expect(data.contains(#""duration_ms":0,"#) && data.contains(#""verdict":"sampled""#))
    }

    @Test(arguments: [false, true])
    func `a ranking of unknown durations says so`(isLarge: Bool) {
        let reports = [1, 2].map { SampleReports.summary(foreign($0, verdict: .stalled)) }
        var histogram = DurationHistogram()
        for report in reports { histogram.add(report.duration) }
        var totals = StallTotals()
        for report in reports { totals.add(report.duration) }
        // The quantiles of many are those of a histogram.
        let (p50, p95) =
            isLarge ? (histogram.quantile(0.5), histogram.quantile(0.95)) : (.zero, .zero)
        let group = StallAggregate(
            ReportGroup(signature: 1, family: 1, title: "work()", frames: ["work()"]),
            totals: totals, p50: p50, p95: p95, p99: p95, apps: ["photos"], versions: ["2.3.0"],
            first: SampleReports.noon, last: SampleReports.noon, example: SampleReports.id(1))
        let view = TopView(
            ranking: Ranking(
                overview: Overview(reports, runs: [SampleReports.run()], example: nil),
                groups: [group]),
            limit: 20, frameCount: 2, terminal: .plain)
        let text = view.lines.joined(separator: "\n")
        #expect(view.header.hasSuffix(": 2 stalls in 1 group, unknown time lost"))
        let row = view.table.lines(for: .plain)[1].split(separator: " ")
        #expect(row.joined(separator: " ") == "1 unknown 2 unknown unknown work()")
        #expect(!text.contains("ms"))
    }

    // MARK: The program

    /// Two stalls, one of them without a duration, and two profiles, in a central store, which has roll-ups.
    private func withStore(_ body: (URL) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "agent.sqlite"),
                [
                    SampleReports.report(1), foreign(2, verdict: .stalled), foreign(3),
                    foreign(4, lasting: 300, weight: 100),
                ])
            let ingest = try Ingest(
                into: directory.appending(path: "stalls.sqlite").path, grouper: DefaultGrouper())
            _ = try ingest.run([directory.appending(path: "agent.sqlite").path])
            try ingest.close()
            try body(directory)
        }
    }

    private func stallctl(_ arguments: String..., in directory: URL) throws -> String {
        let result = try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path,
            [arguments[0], "--store", "stalls.sqlite"] + arguments.dropFirst(),
            environment: ["TZ": "UTC", "HOME": directory.path, "PATH": "/usr/bin:/bin"],
            directory: directory)
        #expect(result.status == 0, "\(result.errors)")
        return result.output
    }

    @Test func `profiles are counted in no number of stalls, and ranked when they are asked for`()
        throws
    {
        try withStore { directory in
            let stalls = try stallctl("top", in: directory)
            #expect(stalls.contains(": 2 stalls in 1 group, 1.8 s lost"), "\(stalls)")
            #expect(stalls.contains("Not ranked: 2 sampled."))
            let status = try stallctl("status", in: directory)
            #expect(status.contains("2 sampled; these are not ranked"), "\(status)")

            let profiles = try stallctl("top", "--verdict", "sampled", in: directory)
            #expect(profiles.contains(": 2 sampled reports in 1 group, 300 ms in all"))
            #expect(!profiles.contains("Not ranked") && !profiles.contains("LOST"))
            #expect(profiles.contains("stallctl list --verdict sampled --store"), "\(profiles)")
            let all = try stallctl(
                "top", "--verdict", "sampled", "--verdict", "stalled", "--json", in: directory)
            #expect(all.contains(#""count":4"#), "\(all)")
            let inclusive = try stallctl(
                "top", "--verdict", "sampled", "--group", "inclusive", "--json", in: directory)
            #expect(inclusive.contains("waitForWorker"))

            for option in ["--sort=began", "--sort=lasted", "waitForWorker"] {
                let listed = try stallctl(
                    "list", "--verdict", "sampled", "--json", option, in: directory)
                let ids = [4, 3].map { SampleReports.id($0).description }
                #expect(
                    listed.split(separator: "\n").map { line in ids.first { line.contains($0) } }
                        == ids, "\(option)")
            }
        }
    }

    @Test func `roll-ups rank profiles as their reports do`() throws {
        try withStore { directory in
            var filter = ReportFilter()
            filter.verdicts = [.sampled]
            let store = try ReportStore.open(path: directory.appending(path: "stalls.sqlite").path)
            let question = RankingQuestion(store: store, filter: filter)
            let exact = try question.exactRanking(by: .count)
            let near = try #require(try question.fromRollUps(by: .count, withDays: false))
            for ranking in [exact, near] {
                #expect(ranking.overview.stallCount == 2 && ranking.groups.map(\.count) == [2])
                #expect(ranking.totalLost == .milliseconds(300))
                #expect(ranking.watched.total == nil && ranking.suppressed.isEmpty)
            }
            #expect(near.groups.map(\.group) == exact.groups.map(\.group))
        }
    }

    @Test func `a page of stalls without durations has no durations`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [foreign(2, verdict: .stalled)])
            let page = directory.appending(path: "page.html")
            _ = try stallctl("report", "-o", page.path, in: directory)
            let text = try String(contentsOf: page, encoding: .utf8)
            #expect(text.contains("main stalled for an unknown time on "))
            #expect(text.contains("<b>Unknown time</b> lost in <b>1 stall</b>"))
            #expect(text.contains("</b>; median unknown, p95 unknown, longest unknown"))
            #expect(text.contains(#"<td class="n lost">unknown</td>"#))
            #expect(!text.contains("0.0 ms"))
            // Nothing is drawn in time.
            #expect(text.contains(#""parts":[]"#))
        }
    }
}
