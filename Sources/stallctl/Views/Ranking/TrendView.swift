// `trend` as text and CSV. Days and hours are those of the local time zone.

internal import Foundation
internal import StallAnalysis
internal import StallFormats
internal import StallModel
import StallQuery

extension TimeBuckets {
    /// Whole days or hours of the time zone from the first instant to the last.
    static func ofCalendar(
        from first: UnixTime, through last: UnixTime, in unit: TrendUnit, of timeZone: TimeZone
    ) throws -> TimeBuckets {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = timeZone
        let component: Calendar.Component = unit == .day ? .day : .hour
        let start = Date(
            timeIntervalSince1970: (Double(first.microseconds) / 1_000_000).rounded(.down))
        var date = calendar.dateInterval(of: component, for: start)?.start ?? start
        var bounds: [UnixTime] = []
        while bounds.count <= TimeBuckets.largestCount {
            bounds.append(
                UnixTime(microseconds: Int64(date.timeIntervalSince1970.rounded()) * 1_000_000))
            if let end = bounds.last, bounds.count > 1, end > last {
                return TimeBuckets(bounds: bounds)
            }
            date = calendar.date(byAdding: component, value: 1, to: date)!
        }
        throw TimeSpanError(unit: unit)
    }
}

extension TrendRow {
    static let csvHeader = ["begin", "end", "title", "count", "total_ms", "max_ms"]

    var csvFields: [CSVWriter.Field] {
        [
            .plain(begin), .plain(end), .text(title), .plain("\(count)"), .plain("\(totalMs)"),
            .plain("\(maxMs)"),
        ]
    }
}

/// `trend` as text.
struct TrendView {
    var trend: StallTrend
    var words = RankedWords()
    var terminal: Terminal

    /// The other columns need less than 50.
    private var barColumns: Int { Swift.max(8, Swift.min(30, (terminal.columns ?? .max) - 50)) }

    var lines: [String] {
        var terminal = terminal
        // Roll-ups have UTC days.
        let isOtherZone = trend.isOfUTC && terminal.timeZone.secondsFromGMT() != 0
        if trend.isOfUTC { terminal.timeZone = .gmt }
        guard let bounds = trend.buckets?.bounds, trend.totals.count > 0 else {
            return ["No \(words.noun)s."]
        }
        func size(_ part: StallTotals) -> Duration {
            words.isOfViolations ? .seconds(part.count) : part.total
        }
        let most = trend.parts.map(size).max() ?? .zero
        let rows = trend.parts.enumerated().map { index, part -> [Table.Cell] in
            let time = bounds[index].shortText(on: terminal)
            let day = String(time[..<(time.lastIndex(of: " ") ?? time.endIndex)])
            return [
                // A stretch without stalls among very many buckets.
                .init(
                    (trend.unit == .day ? day : time)
                        + (isLong(from: bounds[index], to: bounds[index + 1]) ? " ..." : "")),
                .init(
                    part.count > 0 ? words.sum(part.total) : "-",
                    style: part.count > 0 ? .strong : .faint),
                .init("\(part.count)"), .init(part.count > 0 ? words.sum(part.longest) : ""),
                .init(Sparkline.bar(size(part) / most, columns: barColumns), style: .pointing),
            ]
        }
        func isLong(from begin: UnixTime, to end: UnixTime) -> Bool {
            Double(end.microseconds) - Double(begin.microseconds)
                > (trend.unit == .day ? 2 * 86_400e6 : 2 * 3_600e6)
        }
        let table = Table(
            columns: [
                .init(trend.unit.rawValue.uppercased() + (isOtherZone ? " (UTC)" : "")),
                .init(words.isOfStalls ? "LOST" : "TIME", .trailing),
                .init(words.isOfStalls ? "STALLS" : "COUNT", .trailing),
                .init("LONGEST", .trailing, spare: 1),
                .init("", spare: 2),
            ], rows: rows)
        let count = counted(trend.totals.count, words.noun)
        let sentence =
            "\(trend.title.printable): \(count)" + words.time(trend.totals.total)
        return sentence.wrapped(to: terminal.columns) + [""] + table.lines(for: terminal)
    }
}
