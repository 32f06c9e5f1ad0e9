// Stalls over time: asked of the store, as data, and for people.

internal import Foundation
internal import StallAnalysis
internal import StallModel
internal import StallStore

/// The stalls of some groups in days or hours.
struct TrendOverTime {
    var unit: Trend.Unit
    /// The title of the one group, or how many there are.
    var title: String
    var buckets: TimeBuckets?
    /// One for each bucket.
    var parts: [StallTotals]
    var totals: StallTotals
    /// The zone whose days and hours these are.
    var timeZone: TimeZone
}

extension TrendOverTime {
    /// - Parameter name: A name in the titles of the groups; nil for all stalls.
    init(
        store: ReportStore, filter: ReportFilter, rules: GroupingRules, name: String?,
        unit: Trend.Unit?, timeZone: TimeZone
    ) throws {
        self.timeZone = timeZone
        let question = RankingQuestion(
            store: store, filter: filter, rules: rules, group: .signature)
        var ranking = try Self.ranking(question, unit: unit, timeZone: &self.timeZone)
        if let name {
            let all = ranking.hotspots
            ranking.hotspots = all.filter { $0.isMeant(by: name) }
            guard !ranking.hotspots.isEmpty || all.isEmpty else {
                throw UnclearGroup(path: store.path, name: name, found: [], known: all)
            }
        }
        let hotspots = ranking.hotspots
        buckets = ranking.buckets
        parts = Array(repeating: StallTotals(), count: ranking.buckets?.count ?? 0)
        totals = StallTotals()
        for hotspot in hotspots {
            for (index, part) in hotspot.trend.enumerated() {
                parts[index].add(part)
                totals.add(part)
            }
        }
        title =
            name == nil
            ? "All groups"
            : hotspots.count == 1 ? hotspots[0].title : counted(hotspots.count, "group")
        let isDays = buckets.map {
            $0.bounds[1].microseconds - $0.bounds[0].microseconds > 3_600_000_000
        }
        self.unit = unit ?? (isDays == true ? .day : .hour)
    }

    /// All groups in parts of the time. Of a large or pruned central store's days the roll-ups tell: they are those of UTC.
    private static func ranking(
        _ question: RankingQuestion, unit: Trend.Unit?, timeZone: inout TimeZone
    ) throws -> Ranking {
        let lacksReports = try question.lacksReports
        func unitNeeded(_ first: UnixTime, _ last: UnixTime) -> Trend.Unit {
            let days = Double(last.microseconds - first.microseconds) / 86_400e6
            return unit ?? (days <= 2 && !lacksReports ? .hour : .day)
        }
        if unit != .hour,
            let ranking = try question.fromRollUps(
                by: .total, withDays: true,
                buckets: { try buckets(from: $0, through: $1, .day, .gmt) }),
            ranking.isLarge || lacksReports, let first = ranking.overview.first,
            let last = ranking.overview.last,
            unitNeeded(first, last) == .day
        {
            timeZone = .gmt
            return ranking
        }
        let timeZone = timeZone
        return try Ranking(
            store: question.store, filter: question.filter, rules: question.rules, by: .total,
            group: question.group
        ) { first, last in
            try buckets(from: first, through: last, unitNeeded(first, last), timeZone)
        }
    }

    /// The most rows that anybody would read, and that a mistaken clock may cost.
    private static let longest = 10_000

    /// Whole days or hours of the zone from the first instant to the last one.
    static func buckets(
        from first: UnixTime, through last: UnixTime, _ unit: Trend.Unit, _ timeZone: TimeZone
    ) throws -> TimeBuckets {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = timeZone
        let component: Calendar.Component = unit == .day ? .day : .hour
        let start = Date(
            timeIntervalSince1970: (Double(first.microseconds) / 1_000_000).rounded(.down))
        var date = calendar.dateInterval(of: component, for: start)?.start ?? start
        var bounds: [UnixTime] = []
        while bounds.count <= longest {
            bounds.append(
                UnixTime(microseconds: Int64(date.timeIntervalSince1970.rounded()) * 1_000_000))
            if let end = bounds.last, bounds.count > 1, end > last {
                return TimeBuckets(bounds: bounds)
            }
            date = calendar.date(byAdding: component, value: 1, to: date)!
        }
        throw TooLong(unit: unit.rawValue)
    }

    var rows: [TrendRow] {
        guard let bounds = buckets?.bounds else { return [] }
        return parts.enumerated().map { index, part in
            TrendRow(
                begin: bounds[index].rfc3339, end: bounds[index + 1].rfc3339, title: title,
                count: part.count, totalMs: part.total.milliseconds,
                maxMs: part.longest.milliseconds)
        }
    }
}

private struct TooLong: Error, CustomStringConvertible {
    var unit: String

    var description: String {
        "there are more than 10000 \(unit)s between the first stall and the last; --since and --until take a part of them"
    }
}

/// One day or hour as data: the shape of `trend --json`. Scripts depend on the names.
struct TrendRow: Encodable {
    let schema = "stallctl.trend/1"
    var begin: String
    var end: String
    var title: String
    var count: Int
    var totalMs: Double
    var maxMs: Double

    static let csvHeader = ["begin", "end", "title", "count", "total_ms", "max_ms"]

    var csvFields: [CSVWriter.Field] {
        [
            .plain(begin), .plain(end), .text(title), .plain("\(count)"), .plain("\(totalMs)"),
            .plain("\(maxMs)"),
        ]
    }
}

/// `trend` for people.
struct TrendView {
    var trend: TrendOverTime
    var terminal: Terminal

    /// As long as there is room beside the other columns, which take less than 50.
    private var barColumns: Int { Swift.max(8, Swift.min(30, (terminal.columns ?? .max) - 50)) }

    var lines: [String] {
        var terminal = terminal
        // The days of roll-ups are those of UTC.
        let isOtherZone =
            trend.timeZone.secondsFromGMT() != terminal.timeZone.secondsFromGMT()
        terminal.timeZone = trend.timeZone
        guard let bounds = trend.buckets?.bounds, trend.totals.count > 0 else {
            return ["No stalls."]
        }
        let most = trend.parts.map(\.total).max() ?? .zero
        let rows = trend.parts.enumerated().map { index, part -> [Table.Cell] in
            let time = bounds[index].shortText(on: terminal)
            let day = String(time[..<(time.lastIndex(of: " ") ?? time.endIndex)])
            return [
                .init(trend.unit == .day ? day : time),
                .init(
                    part.count > 0 ? part.total.compact : "-",
                    style: part.count > 0 ? .strong : .faint),
                .init("\(part.count)"), .init(part.count > 0 ? part.longest.compact : ""),
                .init(Sparkline.bar(part.total / most, columns: barColumns), style: .pointing),
            ]
        }
        let table = Table(
            columns: [
                .init(trend.unit.rawValue.uppercased() + (isOtherZone ? " (UTC)" : "")),
                .init("LOST", .trailing),
                .init("STALLS", .trailing), .init("LONGEST", .trailing, spare: 1),
                .init("", spare: 2),
            ], rows: rows)
        return [
            "\(trend.title.printable): \(counted(trend.totals.count, "stall")), \(trend.totals.total.compact) lost",
            "",
        ] + table.lines(for: terminal)
    }
}
