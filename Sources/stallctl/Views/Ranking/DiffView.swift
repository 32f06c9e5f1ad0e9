// `diff` as text and CSV.

internal import StallAnalysis
internal import StallFormats
internal import StallModel
internal import StallQuery

extension DiffRow {
    static let csvHeader = [
        "kind", "change", "signature", "title", "frames", "count_a", "count_b", "total_ms_a",
        "total_ms_b", "rate_ms_per_hour_a", "rate_ms_per_hour_b", "ratio", "ratio_low",
        "ratio_high", "compared_count_a", "compared_count_b", "compared_total_ms_a",
        "compared_total_ms_b", "significant", "unit", "units_a", "units_b", "cannot_tell",
    ]

    var csvFields: [CSVWriter.Field] {
        func number(_ value: Double?) -> CSVWriter.Field { .plain(value.map { "\($0)" } ?? "") }
        return [
            .plain(kind), .plain(change), .plain(signature ?? ""), .text(title),
            .text(frames.joined(separator: " <- ")), .plain("\(countA)"), .plain("\(countB)"),
            number(totalMsA), number(totalMsB), number(rateMsPerHourA), number(rateMsPerHourB),
            number(ratio), number(ratioLow), number(ratioHigh), .plain("\(comparedCountA)"),
            .plain("\(comparedCountB)"), number(comparedTotalMsA), number(comparedTotalMsB),
            .plain("\(significant)"), .plain(unit ?? ""), .plain(unitsA.map(String.init) ?? ""),
            .plain(unitsB.map(String.init) ?? ""), .text(cannotTell ?? ""),
        ]
    }
}

/// `diff` as text.
struct DiffView {
    var comparison: Comparison
    /// A and B as typed.
    var names: [String]
    var key: GroupKey
    var limit: Int
    var terminal: Terminal

    /// The time lost on each side.
    var sideLines: [String] {
        [
            sideLine(
                "A", names[0], comparison.first, comparison.compared.first,
                comparison.watched?.first),
            sideLine(
                "B", names[1], comparison.second, comparison.compared.second,
                comparison.watched?.second),
        ]
    }

    var lines: [String] {
        var lines = sideLines
        guard !comparison.groups.isEmpty else {
            return wrapped(lines + ["No stalls on either side."])
        }
        lines.append(summary)
        if let basis { lines.append(basis) }
        if comparison.watched == nil {
            lines.append(
                "Watched time is not recorded; assuming equal watched time on both sides."
            )
        }
        lines = wrapped(lines) + [""] + table.lines(for: terminal)
        let rest = comparison.groups.count - limit
        if rest > 0 {
            lines.append(
                terminal.paint("\(counted(rest, "more group")): --limit \(limit + rest)", .faint))
        }
        return lines
    }

    private func wrapped(_ lines: [String]) -> [String] {
        lines.flatMap { $0.wrapped(to: terminal.columns, indentation: 3) }
    }

    private func sideLine(
        _ letter: String, _ name: String, _ totals: StallTotals, _ compared: StallTotals,
        _ watched: Duration?
    ) -> String {
        guard totals.count > 0 else {
            return "\(letter): \(name.printable): no stalls" + (watched?.watchedClause ?? "")
        }
        var line =
            "\(letter): \(name.printable): \(counted(totals.count, "stall")), \(totals.total.compact) lost"
        if let watched {
            line += watched.watchedClause
            line += " (\(compared.total.perHour(of: watched)))"
            let rest = totals.count - compared.count
            if rest > 0 {
                line +=
                    "; \(counted(rest, "stall")) (\((totals.total - compared.total).compact)) not compared: "
                    + "watched time is not recorded for their loops"
            }
        }
        return line
    }

    /// `B lost 1.47 times as much as A, per watched hour (95% confidence interval: 1.31 to 1.66).`
    var summary: String {
        let ratio = comparison.ratio
        let unit = comparison.watched == nil ? "" : ", per watched hour"
        guard !ratio.value.isNaN else {
            let isCompared = comparison.compared.first.count + comparison.compared.second.count > 0
            return isCompared
                ? "No time was lost on either side."
                : "No stall is in a loop with recorded watched time."
        }
        guard ratio.value.isFinite, ratio.value > 0 else {
            return ratio.value > 0 ? "A lost nothing." : "B lost nothing."
        }
        let bounds = interval(ratio)
        let clause = bounds.isEmpty ? "" : " (95% confidence interval: \(bounds))"
        let text = "B lost \(ratio.value.short) times as much as A\(unit)\(clause)."
        return terminal.paint(text, .strong)
    }

    /// The basis of the intervals: `Compared by host, 10 in A and 12 in B.`
    var basis: String? {
        if let reason = comparison.cannotTell {
            return "Cannot tell whether a difference is significant: \(reason)."
        }
        guard let units = comparison.units else { return nil }
        let basis = "Compared by \(units.word): \(units.first) in A, \(units.second) in B."
        let left = comparison.groups.filter { $0.cannotTell != nil }
        guard let reason = left.first?.cannotTell else { return basis }
        return basis
            + " \(counted(left.count, "group")) \(left.count == 1 ? "is" : "are") not judged: \(reason)."
    }

    private var table: Table {
        let rows = comparison.groups.prefix(limit).map { group -> [Table.Cell] in
            func lost(_ totals: StallTotals, _ watched: Duration?) -> Table.Cell {
                guard totals.count > 0 else { return .init("-", style: .faint) }
                return .init(
                    watched.map { totals.total.perHour(of: $0) } ?? totals.total.compact)
            }
            let frames = group.group.frames.isEmpty ? [group.title] : group.group.frames
            return [
                .init(
                    group.change.rawValue,
                    style: group.isSignificant ? group.change.style : .faint),
                .init(
                    group.ratio.value.isFinite && group.ratio.value > 0
                        ? group.ratio.value.short : ""),
                .init(interval(group.ratio), style: .faint),
                lost(group.compared.first, comparison.watched?.first),
                lost(group.compared.second, comparison.watched?.second),
                .init("\(group.compared.first.count)"), .init("\(group.compared.second.count)"),
                .init(
                    frames[0], additions: frames.dropFirst().prefix(1).map { "  <- " + $0 },
                    style: .strong),
            ]
        }
        return Table(
            columns: [
                .init("CHANGE"), .init("RATIO", .trailing), .init("95% CI", .trailing, spare: 1),
                .init("LOST A", .trailing, spare: 3), .init("LOST B", .trailing, spare: 2),
                .init("STALLS A", .trailing, spare: 5), .init("STALLS B", .trailing, spare: 4),
                .init(key.title),
            ], rows: rows)
    }

    func interval(_ ratio: RateRatio) -> String {
        switch (ratio.low.isFinite && ratio.low > 0, ratio.high.isFinite) {
        case (true, true): "\(ratio.low.short) to \(ratio.high.short)"
        case (true, false): "over \(min(ratio.low, Double.largestShown).short)"
        case (false, true): "under \(ratio.high.short)"
        case (false, false): ""
        }
    }
}

extension GroupChange {
    fileprivate var style: TextStyle? {
        switch self {
        case .new, .worse: .alarming
        case .gone, .better: .pointing
        case .unclear: .faint
        }
    }
}

extension Duration {
    /// `1.6 s/h`. A rate over next to no watched time has no more digits than others.
    fileprivate func perHour(of watched: Duration) -> String {
        let days = self / .seconds(86_400) / (watched / .seconds(3600))
        return (days < 1000 ? (self / (watched / .seconds(3600))).compact : "over 1000d") + "/h"
    }
}

extension Double {
    /// Larger numbers have no digits.
    static let largestShown = 1e6

    /// Two or three significant digits: `0.05`, `1.47`, `26.1`, `340`; `over 1000000` and `under 0.001` beyond.
    var short: String { short(after: "") }

    /// - Parameter sign: The text that the number follows: `over ×1000000`.
    func short(after sign: String) -> String {
        if self > Self.largestShown { return "over \(sign)1000000" }
        if self > 0, self < 0.001 { return "under \(sign)0.001" }
        let size = abs(self)
        let digits = size > 0 && size < 0.00995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0
        let scale = [1.0, 10, 100, 1000][digits]
        let steps = Int64((self * scale).rounded().clamped)
        guard digits > 0 else { return sign + String(steps) }
        let rest = String(abs(steps) % Int64(scale)).padded(with: "0", to: digits)
        return sign + (steps < 0 ? "-" : "") + "\(abs(steps) / Int64(scale)).\(rest)"
    }

    private var clamped: Double { isNaN ? 0 : Swift.min(Swift.max(self, -9e15), 9e15) }
}
