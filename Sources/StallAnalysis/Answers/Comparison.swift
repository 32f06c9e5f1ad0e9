// Two sets of stalls side by side: what got worse, and whether that can be chance. Time lost is compared per watched
// hour, of the loops whose watched time is recorded; where that is not known of one side at all, all stalls count and both
// sides count as watched equally long.

internal import Glibc
package import StallModel

/// One of two sets that are compared.
package struct ComparedSide: Sendable {
    package var groups: [StallAggregate]
    /// How long loops were watched; nil when that is not known.
    package var watched: Duration?

    package init(groups: [StallAggregate], watched: Duration?) {
        self.groups = groups
        self.watched = watched
    }
}

/// What became of a group.
package enum GroupChange: String, CaseIterable, Hashable, Sendable {
    case new, worse, better, gone
    /// The difference can be chance.
    case unclear
}

/// How many times as much time a group lost per watched hour, and the interval that holds the truth 19 times of 20.
package struct RateRatio: Hashable, Sendable {
    /// Infinite for a new group, 0 for one that is gone, not a number where neither side has a stall that counts.
    package var value: Double
    package var low: Double
    package var high: Double

    /// - Parameters:
    ///   - exposure: How many times as long the second side was watched.
    ///
    /// Stalls are taken as a compound Poisson process: they come at random, each as long as those seen. The logarithm
    /// of a total then varies by the sum of squares over the square of the sum. A side without stalls has no such
    /// variance; then the counts tell: of n stalls, all came on one side.
    package init(_ first: StallTotals, _ second: StallTotals, exposure: Double) {
        let normal95 = 1.959_963_985
        let firstTotal = first.total / .seconds(1)
        let secondTotal = second.total / .seconds(1)
        if first.count == 0 && second.count == 0 {
            (value, low, high) = (.nan, 0, .infinity)
            return
        }
        if first.count == 0 || second.count == 0 {
            // Clopper and Pearson's interval for 0 of n.
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
    /// The part of them that is compared: of watched loops, where watched time is known on both sides.
    package var compared: (first: StallTotals, second: StallTotals)
    package var ratio: RateRatio
    package var change: GroupChange
}

/// The answer to "what changed".
package struct Comparison: Sendable {
    /// The groups, those whose time per watched hour changed most first.
    package let groups: [ComparedGroup]
    package let first: StallTotals
    package let second: StallTotals
    /// The part of them that is compared.
    package let compared: (first: StallTotals, second: StallTotals)
    /// Of all groups together.
    package let ratio: RateRatio
    package let change: GroupChange
    /// How long each side was watched, when both are known.
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

    /// Whether all together or any group lost more than so many times as much time per watched hour, beyond chance.
    package func exceeds(_ limit: Double) -> Bool {
        func exceeds(_ change: GroupChange, _ ratio: RateRatio) -> Bool {
            (change == .worse || change == .new) && ratio.value > limit && ratio.low > 1
        }
        return exceeds(change, ratio) || groups.contains { exceeds($0.change, $0.ratio) }
    }
}

extension ComparedGroup {
    /// How much the time lost changed, per time that the first side was watched.
    fileprivate func difference(_ exposure: Double) -> Double {
        abs(compared.second.total / .seconds(1) / exposure - compared.first.total / .seconds(1))
    }
}

extension GroupChange {
    /// - Parameters:
    ///   - all: All stalls of each side.
    ///   - compared: Those of loops whose watched time is recorded.
    fileprivate init(
        _ all: (first: StallTotals, second: StallTotals),
        _ compared: (first: StallTotals, second: StallTotals), _ ratio: RateRatio, exposure: Double
    ) {
        let (first, second) = compared
        if first.count == 0 || second.count == 0 {
            // What one side has, but not in watched loops, is neither new nor gone.
            self =
                all.first.count == 0
                ? (second.count > 0 ? .new : .unclear)
                : all.second.count == 0 && first.count > 0 ? .gone : .unclear
        } else {
            // One stall, however long, makes no trend.
            let isWorse = ratio.low > 1 && second.total - second.longest > first.total * exposure
            let isBetter = ratio.high < 1 && (first.total - first.longest) * exposure > second.total
            self = isWorse ? .worse : isBetter ? .better : .unclear
        }
    }
}
