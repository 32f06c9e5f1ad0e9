// The totals of all stalls that a filter selects, whatever their group.

internal import StallModel
internal import StallQuery
internal import StallStore

/// Counts by build, loop and verdict.
struct StallTally {
    private struct Row {
        var app, version, loop: String
        var verdict: StallVerdict
        var count, first_us, last_us: Int64
    }

    private var rows: [Row] = []

    init(_ source: CellSource) throws {
        for question in Self.questions(source) {
            var rows = try source.server.rows(question, columnCount: 7)
            while try rows.step() {
                self.rows.append(
                    Row(
                        app: try rows.text(), version: try rows.text(), loop: try rows.text(),
                        verdict: try rows.verdict(), count: try rows.integer(),
                        first_us: try rows.integer(), last_us: try rows.integer()))
            }
        }
    }

    /// Of roll-ups, and of reports where there have to be.
    static func questions(_ source: CellSource) -> [ClickHouseQuery] {
        var source = source
        source.axis = .none
        func question(
            _ table: ClickHouseQuery, _ measures: ClickHouseQuery
        ) -> ClickHouseQuery {
            """
            select app, version, loop_name, verdict, \(measures)
            from \(table) group by app, version, loop_name, verdict
            """
        }
        return [question(source.rolledUp, "sum(report_count), min(first_us), max(last_us)")]
            + (source.reports.map { [question($0, "count(), min(start_us), max(start_us)")] } ?? [])
    }

    /// Puts it into an answer that was given of some groups only.
    func complete(_ answer: inout AggregateAnswer, ranked: Set<StallVerdict>) {
        func names(_ name: (Row) -> String, of rows: [Row]) -> [String] {
            Set(rows.map(name)).sorted()
        }
        let rows = rows.filter { $0.count > 0 }
        answer.counts = [:]
        for row in rows {
            answer.counts[row.verdict] = Int(
                Int64(answer.counts[row.verdict] ?? 0).addingSaturated(row.count))
        }
        answer.apps = names({ $0.app }, of: rows)
        answer.versions = names({ $0.version }, of: rows)
        answer.loops = names({ $0.loop }, of: rows)
        answer.first = rows.map(\.first_us).min().map(UnixTime.init(microseconds:))
        answer.last = rows.map(\.last_us).max().map(UnixTime.init(microseconds:))
        let stalls = rows.filter { ranked.contains($0.verdict) }
        answer.builds = names({ "\($0.app) \($0.version)" }, of: stalls)
        answer.firstRanked = stalls.map(\.first_us).min().map(UnixTime.init(microseconds:))
        answer.lastRanked = stalls.map(\.last_us).max().map(UnixTime.init(microseconds:))
    }
}
