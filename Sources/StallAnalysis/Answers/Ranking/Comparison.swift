// Compares two sets of stalls: what regressed, and whether the change is statistically significant. Time lost is
// compared per watched hour, in loops with recorded watched time. If one side has none, all stalls count and equal
// watched time is assumed.

package import StallModel
package import StallQuery

/// A process run on one side of a comparison, with or without stalls.
package struct ComparedRun: Hashable, Sendable {
    package var run: UniqueID
    package var host: String
    /// Nil if not recorded.
    package var watched: Duration?

    package init(run: UniqueID, host: String, watched: Duration? = nil) {
        self.run = run
        self.host = host
        self.watched = watched
    }
}

/// The runs by which the significance of a difference is judged.
package enum ComparedRuns: Hashable, Sendable {
    case known([ComparedRun])
    /// Why runs are not known: `reports were pruned`.
    case unknown(reason: String)
}

/// One of the two compared sets.
package struct ComparedSide: Sendable {
    /// With their stalls by run if these are known.
    package var groups: [StallAggregate]
    /// Watched time of the loops; nil if unknown.
    package var watched: Duration?
    package var runs: ComparedRuns
    /// The stalls by run of groups without runs.
    var restRuns: [RunTotals]
    /// Every stall once, by run, where groups share stalls.
    var allRuns: [RunTotals]?

    package init(
        groups: [StallAggregate], watched: Duration?, runs: ComparedRuns,
        restRuns: [RunTotals] = [], allRuns: [RunTotals]? = nil
    ) {
        self.groups = groups
        self.watched = watched
        self.runs = runs
        self.restRuns = restRuns
        self.allRuns = allRuns
    }
}

/// How a group changed.
package enum GroupChange: String, CaseIterable, Hashable, Sendable {
    case new, worse, better, gone
    /// The difference is not significant.
    case unclear
}

/// The ratio of the time lost per watched hour, with its 95% confidence interval; without bounds, 0 and infinite, if
/// hosts or runs are too few for them.
package struct RateRatio: Hashable, Sendable {
    /// Infinite for a new group, 0 for a gone one, NaN if neither side has a stall that counts.
    package var value: Double
    package var low: Double
    package var high: Double

    /// - Parameters:
    ///   - exposure: The second side's watched time divided by the first's.
    fileprivate init(_ first: StallTotals, _ second: StallTotals, exposure: Double) {
        (low, high) = (0, .infinity)
        if first.count == 0 || second.count == 0 {
            value = first.count > 0 ? 0 : second.count > 0 ? .infinity : .nan
        } else {
            value = second.total / .seconds(1) / (first.total / .seconds(1)) / exposure
        }
    }

    /// An interval holds the ratio that it is of: hosts that were watched unevenly may place their own elsewhere.
    fileprivate mutating func setBounds(_ low: Double, _ high: Double) {
        (self.low, self.high) = value.isNaN ? (low, high) : (min(low, value), max(high, value))
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
    /// Whether chance does not explain the difference, as one of all groups.
    package var isSignificant = false
    /// Why it was not judged though others were; nil if it was.
    package var cannotTell: String?
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
    package let isSignificant: Bool
    /// Each side's watched time, if both are known.
    package let watched: (first: Duration, second: Duration)?
    /// Why no difference can be called significant: `3 hosts`; nil if it can.
    package let cannotTell: String?
    private let judge: ComparisonJudge?

    /// The unit that is resampled, and how many each side has: `host`; nil if no verdict is possible.
    package var units: (word: String, first: Int, second: Int)? {
        judge.map {
            ($0.placements.kind.rawValue, $0.placements.sizes.first, $0.placements.sizes.second)
        }
    }

    package init(_ first: Ranking, _ second: Ranking) {
        self.init(
            ComparedSide(
                groups: first.groups, watched: first.watched.total, runs: first.runs,
                restRuns: first.restRuns, allRuns: first.allRuns),
            ComparedSide(
                groups: second.groups, watched: second.watched.total, runs: second.runs,
                restRuns: second.restRuns, allRuns: second.allRuns), by: first.key)
    }

    /// - Parameter key: The fact by which groups are grouped.
    package init(
        _ first: ComparedSide, _ second: ComparedSide, by key: GroupKey = .signature
    ) {
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
        // The functions of one stall are several groups; all together it is one stall.
        let all: JudgedGroup? =
            if let one = first.allRuns, let other = second.allRuns {
                JudgedGroup(first: one, second: other)
            } else {
                nil
            }
        let (judge, reason) = ComparisonJudge.make(
            first.runs, second.runs,
            order.map {
                JudgedGroup(
                    first: pairs[$0]!.first?.runs ?? [], second: pairs[$0]!.second?.runs ?? [])
            },
            rest: JudgedGroup(first: first.restRuns, second: second.restRuns), all: all,
            isWatched: watched != nil, exposure: exposure, areHosts: key == .host)
        let verdicts = judge?.verdicts()
        var (firstTotals, secondTotals) = (StallTotals(), StallTotals())
        var compared = (first: StallTotals(), second: StallTotals())
        let groups = order.enumerated().map { index, signature -> ComparedGroup in
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
            var ratio = RateRatio(part.first, part.second, exposure: exposure)
            if let verdict = verdicts?[index] { ratio.setBounds(verdict.low, verdict.high) }
            let isSignificant = verdicts?[index].isSignificant ?? false
            let isLeftOut =
                judge?.isJudged(index) == false && part.first.count + part.second.count > 0
            let shown = (pair.second ?? pair.first)!
            return ComparedGroup(
                group: shown.group, title: shown.title, first: one, second: other, compared: part,
                ratio: ratio,
                change: GroupChange((one, other), part, ratio, isSignificant: isSignificant),
                isSignificant: isSignificant,
                cannotTell: isLeftOut ? judge?.leftOut : nil)
        }
        if let all {
            (firstTotals, secondTotals) = (all.first.sum(\.totals), all.second.sum(\.totals))
            compared =
                watched == nil
                ? (firstTotals, secondTotals)
                : (all.first.sum(\.watched), all.second.sum(\.watched))
        }
        self.groups = groups.sorted { left, right in
            let (one, other) = (left.difference(exposure), right.difference(exposure))
            return (other, left.title, left.group.signature) < (
                one, right.title, right.group.signature
            )
        }
        (self.first, self.second) = (firstTotals, secondTotals)
        self.compared = compared
        var ratio = RateRatio(compared.first, compared.second, exposure: exposure)
        if let verdict = verdicts?.last { ratio.setBounds(verdict.low, verdict.high) }
        self.ratio = ratio
        isSignificant = verdicts?.last?.isSignificant ?? false
        change = GroupChange(
            (firstTotals, secondTotals), compared, ratio, isSignificant: isSignificant)
        self.watched = watched
        self.judge = judge
        cannotTell = reason
    }

    /// Whether any group, or the total, lost more than this many times as much, beyond chance.
    package func exceeds(_ limit: Double) -> Bool { judge?.exceeds(limit) ?? false }
}

extension [RunTotals] {
    fileprivate func sum(_ part: (RunTotals) -> StallTotals) -> StallTotals {
        reduce(into: StallTotals()) { $0.add(part($1)) }
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
        _ compared: (first: StallTotals, second: StallTotals), _ ratio: RateRatio,
        isSignificant: Bool
    ) {
        let (first, second) = compared
        if first.count == 0 || second.count == 0 {
            // Stalls outside of watched loops make a group neither new nor gone.
            self =
                all.first.count == 0
                ? (second.count > 0 ? .new : .unclear)
                : all.second.count == 0 && first.count > 0 ? .gone : .unclear
        } else {
            self = !isSignificant ? .unclear : ratio.value > 1 ? .worse : .better
        }
    }
}
