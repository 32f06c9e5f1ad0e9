// Summary of all reports in a ranking.

package import StallModel
package import StallQuery

package struct Overview: Sendable {
    /// The verdicts of the ranked reports.
    package var ranked: Set<StallVerdict> = [.stalled]
    /// The number of reports by verdict.
    package var counts: [StallVerdict: Int] = [:]
    /// `photos 2.3.0`, sorted; of the ranked reports, like all below.
    package var apps: [String] = []
    /// Empty if unknown.
    package var hosts: [String] = []
    package var first: UnixTime?
    package var last: UnixTime?
    package var openCount = 0
    package var hangCount = 0
    package var totalLost = Duration.zero
    /// The part of it that was not the threads' own.
    package var delayed = Duration.zero
    /// The ranked stalls of loops with recorded watched time.
    package var watched = StallTotals()
    /// A unique prefix of the id of the first group's example.
    package var example: String?

    /// The number of ranked reports.
    package var stallCount: Int { ranked.reduce(0) { $0.addingSaturated(counts[$1] ?? 0) } }
    package var isEmpty: Bool { counts.isEmpty }
}

extension Overview {
    package init(
        _ reports: [ReportSummary], runs: [ProcessRun], example: UniqueID?,
        ranked: Set<StallVerdict> = [.stalled]
    ) {
        self.init()
        self.ranked = ranked
        var seen: Set<Int> = []
        for report in reports {
            counts[report.verdict, default: 0] += 1
            guard ranked.contains(report.verdict) else { continue }
            seen.insert(report.run)
            first = min(first ?? report.start, report.start)
            last = max(last ?? report.start, report.start)
            openCount += report.state == .open ? 1 : 0
            hangCount += report.state == .hang ? 1 : 0
            totalLost += report.duration
            delayed += report.delayed
            if report.isWatched { watched.add(report.duration, delayed: report.delayed) }
        }
        let seenRuns = seen.compactMap { runs.indices.contains($0) ? runs[$0] : nil }
        apps = Set(seenRuns.map { "\($0.app) \($0.version)" }).sorted()
        hosts = Set(seenRuns.map(\.host)).sorted()
        if let example {
            self.example = ShortIDs(shown: [example], among: reports.lazy.map(\.id))[example]
        }
    }

    init(_ answer: AggregateAnswer, example: UniqueID?, ranked: Set<StallVerdict>) {
        self.init()
        self.ranked = ranked
        counts = answer.counts
        apps = answer.builds
        first = answer.firstRanked
        last = answer.lastRanked
        totalLost = answer.total
        delayed = answer.delayed
        watched = answer.watched
        // The millisecond and twelve random bits: other ids may share the first twelve digits.
        self.example = example.map { String($0.description.prefix(16)) }
    }
}
