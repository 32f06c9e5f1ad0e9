// Compares two sets of stalls: what regressed, and whether the change is statistically significant. Time lost is
// compared per watched hour, in loops with recorded watched time. If one side has none, all stalls count and equal
// watched time is assumed.

internal import Glibc
import StallModel
package import StallQuery

/// One of the two compared sets.
package struct ComparedSide: Sendable {
    package var groups: [StallAggregate]
    /// Watched time of the loops; nil if unknown.
    package var watched: Duration?

    package init(groups: [StallAggregate], watched: Duration?) {
        self.groups = groups
        self.watched = watched
    }
}

/// How a group changed.
package enum GroupChange: String, CaseIterable, Hashable, Sendable {
    case new, worse, better, gone
    /// The difference is not significant.
    case unclear
}

/// The ratio of the time lost per watched hour, with its 95% confidence interval.
package struct RateRatio: Hashable, Sendable {
    /// Infinite for a new group, 0 for a gone one, NaN if neither side has a stall that counts.
    package var value: Double
    package var low: Double
    package var high: Double

    /// - Parameters:
    ///   - exposure: The second side's watched time divided by the first's.
    ///
    /// Stalls are modelled as a compound Poisson process with the observed durations: the variance of the logarithm of
    /// a total is the sum of squares over the square of the sum. A side without stalls has no such variance; then the
    /// interval follows from the counts: all of n stalls came on one side.
    package init(_ first: StallTotals, _ second: StallTotals, exposure: Double) {
        let normal95 = 1.959_963_985
        let firstTotal = first.total / .seconds(1)
        let secondTotal = second.total / .seconds(1)
        if first.count == 0 && second.count == 0 {
            (value, low, high) = (.nan, 0, .infinity)
            return
        }
        if first.count == 0 || second.count == 0 {
            // The Clopper-Pearson interval for 0 of n.
            let share = pow(0.025, 1 / Double(Swift.max(first.count + second.count, 1)))
            let odds = share / (1 - share)
            value = first.count == 0 ? .infinity : 0
            low = first.count == 0 ? odds / exposure : 0
            high = first.count == 0 ? .infinity : 1 / odds / exposure
            return
        }
        value = secondTotal / firstTotal / exposure
        let variance =
            first.squares / (firstTotal * firstTotal) + second.squares / (secondTotal * secondTotal)
        let factor = exp(normal95 * variance.squareRoot())
        low = value / factor
        high = value * factor
    }
}

/// One group on both sides.
package struct ComparedGroup: Sendable {
    package var group: ReportGroup
    package var title: String
    package var first: StallTotals
    package var second: StallTotals
    /// The part that is compared: stalls in watched loops, if watched time is known on both sides.
    package var compared: (first: StallTotals, second: StallTotals)
    package var ratio: RateRatio
    package var change: GroupChange
}

/// The result of `diff`.
package struct Comparison: Sendable {
    /// The groups, sorted by the change of time lost per watched hour, largest first.
    package let groups: [ComparedGroup]
    package let first: StallTotals
    package let second: StallTotals
    /// The part that is compared.
    package let compared: (first: StallTotals, second: StallTotals)
    /// The ratio of all groups together.
    package let ratio: RateRatio
    package let change: GroupChange
    /// Each side's watched time, if both are known.
    package let watched: (first: Duration, second: Duration)?

    package init(_ first: Ranking, _ second: Ranking) {
        self.init(
            ComparedSide(groups: first.groups, watched: first.watched.total),
            ComparedSide(groups: second.groups, watched: second.watched.total))
    }

    package init(_ first: ComparedSide, _ second: ComparedSide) {
        let watched: (first: Duration, second: Duration)? =
            if let one = first.watched, let other = second.watched, one > .zero, other > .zero {
                (one, other)
            } else {
                nil
            }
        let exposure = watched.map { $0.second / $0.first } ?? 1
        var order: [Int64] = []
        var pairs: [Int64: (first: StallAggregate?, second: StallAggregate?)] = [:]
        for one in first.groups {
            order.append(one.group.signature)
            pairs[one.group.signature] = (one, nil)
        }
        for other in second.groups {
            let signature = other.group.signature
            if pairs[signature] == nil { order.append(signature) }
            pairs[signature, default: (nil, nil)].second = other
        }
        var (firstTotals, secondTotals) = (StallTotals(), StallTotals())
        var compared = (first: StallTotals(), second: StallTotals())
        let groups = order.map { signature -> ComparedGroup in
            let pair = pairs[signature]!
            let (one, other) = (
                pair.first?.totals ?? StallTotals(), pair.second?.totals ?? StallTotals()
            )
            firstTotals.add(one)
            secondTotals.add(other)
            let part =
                watched == nil
                ? (first: one, second: other)
                : (
                    first: pair.first?.watched ?? StallTotals(),
                    second: pair.second?.watched ?? StallTotals()
                )
            compared.first.add(part.first)
            compared.second.add(part.second)
            let ratio = RateRatio(part.first, part.second, exposure: exposure)
            let shown = (pair.second ?? pair.first)!
            return ComparedGroup(
                group: shown.group, title: shown.title, first: one, second: other, compared: part,
                ratio: ratio,
                change: GroupChange((one, other), part, ratio, exposure: exposure))
        }
        self.groups = groups.sorted { left, right in
            let (one, other) = (left.difference(exposure), right.difference(exposure))
            return (other, left.title, left.group.signature) < (
                one, right.title, right.group.signature
            )
        }
        (self.first, self.second) = (firstTotals, secondTotals)
        self.compared = compared
        ratio = RateRatio(compared.first, compared.second, exposure: exposure)
        change = GroupChange(
            (firstTotals, secondTotals), compared, ratio, exposure: exposure)
        self.watched = watched
    }

    /// Whether any group, or the total, regressed by more than this ratio, significantly.
    package func exceeds(_ limit: Double) -> Bool {
        func exceeds(_ change: GroupChange, _ ratio: RateRatio) -> Bool {
            (change == .worse || change == .new) && ratio.value > limit && ratio.low > 1
        }
        return exceeds(change, ratio) || groups.contains { exceeds($0.change, $0.ratio) }
    }
}

extension ComparedGroup {
    /// The change of the time lost, at the first side's watched time.
    fileprivate func difference(_ exposure: Double) -> Double {
        abs(compared.second.total / .seconds(1) / exposure - compared.first.total / .seconds(1))
    }
}

extension GroupChange {
    /// - Parameters:
    ///   - all: All stalls of each side.
    ///   - compared: The stalls in loops with recorded watched time.
    fileprivate init(
        _ all: (first: StallTotals, second: StallTotals),
        _ compared: (first: StallTotals, second: StallTotals), _ ratio: RateRatio, exposure: Double
    ) {
        let (first, second) = compared
        if first.count == 0 || second.count == 0 {
            // Stalls outside of watched loops make a group neither new nor gone.
            self =
                all.first.count == 0
                ? (second.count > 0 ? .new : .unclear)
                : all.second.count == 0 && first.count > 0 ? .gone : .unclear
        } else {
            // A single stall, however long, is not significant.
            let isWorse = ratio.low > 1 && second.total - second.longest > first.total * exposure
            let isBetter = ratio.high < 1 && (first.total - first.longest) * exposure > second.total
            self = isWorse ? .worse : isBetter ? .better : .unclear
        }
    }
}
