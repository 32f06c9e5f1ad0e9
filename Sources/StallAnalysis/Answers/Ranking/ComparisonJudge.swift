// Decides which differences of a comparison chance does not explain. docs/decisions/0019-judge-differences-by-hosts.md
// has the rule, which others were tried, and how it was measured.

internal import StallModel
internal import StallQuery

/// One group on both sides, as the judge sees it.
struct JudgedGroup {
    var first: [RunTotals]
    var second: [RunTotals]
}

/// Judges the groups of one comparison together: among two hundred groups, one in twenty must not mean five percent.
struct ComparisonJudge {
    let placements: UnitPlacements
    /// The second side's watched time divided by the first's.
    private let odds: Double
    /// The largest groups, then the total of all.
    private let judged: [Judged]
    /// Where a group is in `judged`; nil for one too small to be judged.
    private let places: [Int?]

    /// The part of a group's judgement that does not depend on the ratio.
    fileprivate struct Judged {
        var placed: PlacedGroup
        var first, second: StallTotals
        /// The second side's share of the time lost.
        var share: Double
        /// How many stalls of equal length would vary as much if all are independent; of a group of one side, at most the
        /// number of units of equal time.
        var count: Double
        /// Of a group of both sides.
        var scatter: HostScatter?
        /// Of a group of one side.
        var bound: NewGroupBound?
    }

    /// Lost time by unit, of one group.
    fileprivate struct Sums {
        var lost: [Duration]
        /// The squares of the lengths of stalls, in seconds.
        var squares: [Double]
        var first = StallTotals()
        var second = StallTotals()
    }

    /// The share of placements that counts as rare on one side. With 2.5 % on either side, the worst of many cases would
    /// hold the truth in less than 95 of 100.
    static let tail = 0.018
    /// The number of groups that are judged, those in which the most time was lost. The choice does not depend on where
    /// the placements put it, so that it is no choice of extremes.
    static let groupLimit = 200
    /// Why groups are not judged though their total is.
    let leftOut: String

    /// - Parameters:
    ///   - groups: The stalls of each group by run, of watched loops only if time is compared per watched hour. A group
    ///     without any is not judged.
    ///   - rest: All stalls of groups without any.
    ///   - all: Every stall once, where groups share stalls; nil where the groups and the rest are all.
    ///   - odds: The second side's watched time divided by the first's.
    init(
        _ placements: UnitPlacements, _ groups: [JudgedGroup], rest: JudgedGroup,
        all: JudgedGroup? = nil, isWatched: Bool, odds: Double,
        leftOut: String = "not among the \(groupLimit) groups that lost most"
    ) {
        (self.placements, self.odds, self.leftOut) = (placements, odds, leftOut)
        let none = Sums(
            lost: Array(repeating: .zero, count: placements.units.count),
            squares: Array(repeating: 0, count: placements.units.count))
        let means = Self.meanWatched(placements)
        func perHour(_ sums: Sums) -> [Double] {
            zip(sums.lost, placements.units).map { lost, unit in
                lost / .seconds(1) / (unit.isSecond ? means.second : means.first)
            }
        }
        func added(_ group: JudgedGroup) -> Sums {
            var sums = none
            for (runs, isSecond) in [(group.first, false), (group.second, true)] {
                for run in runs {
                    let stalls = isWatched ? run.watched : run.totals
                    guard stalls.count > 0,
                        let unit = placements.unit(of: run.run, isSecond: isSecond)
                    else { continue }
                    // Whole numbers, so that the order of the runs does not matter.
                    sums.lost[unit] += stalls.total
                    sums.squares[unit] += stalls.squares
                    if isSecond { sums.second.add(stalls) } else { sums.first.add(stalls) }
                }
            }
            return sums
        }
        var total = none
        var known: [(group: Int, sums: Sums)] = []
        for (number, group) in (groups + [rest]).enumerated()
        where !group.first.isEmpty || !group.second.isEmpty {
            let sums = added(group)
            total.first.add(sums.first)
            total.second.add(sums.second)
            for unit in sums.lost.indices {
                total.lost[unit] += sums.lost[unit]
                total.squares[unit] += sums.squares[unit]
            }
            if number < groups.count { known.append((number, sums)) }
        }
        if let all { total = added(all) }
        if known.count > Self.groupLimit {
            let sizes = known.map { perHour($0.sums).reduce(0, +) }
            let largest = known.indices.sorted { (sizes[$1], $0) < (sizes[$0], $1) }
            known = largest.prefix(Self.groupLimit).map { known[$0] }
        }
        var places: [Int?] = Array(repeating: nil, count: groups.count)
        for (place, one) in known.enumerated() { places[one.group] = place }
        self.places = places + [known.count]
        judged = (known.map(\.sums) + [total]).map { sums in
            Judged(sums, perHour(sums), placements, means)
        }
    }

    /// The groups of two sides that may be judged.
    static func largestGroups(_ sides: [Ranking]) -> Set<Int64> {
        let isWatched = sides.allSatisfy { ($0.watched.total ?? .zero) > .zero }
        var sizes: [Int64: Double] = [:]
        for side in sides {
            let watched = isWatched ? side.watched.total! / .seconds(3600) : 1
            for group in side.groups {
                let lost = isWatched ? group.watched.total : group.total
                sizes[group.group.signature, default: 0] += lost / .seconds(1) / watched
            }
        }
        guard sizes.count > groupLimit else { return Set(sizes.keys) }
        let largest = sizes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return Set(largest.prefix(groupLimit).map(\.key))
    }

    private static func meanWatched(
        _ placements: UnitPlacements
    ) -> (first: Double, second: Double) {
        var sums = (first: 0.0, second: 0.0)
        for unit in placements.units {
            if unit.isSecond { sums.second += unit.watched } else { sums.first += unit.watched }
        }
        let counts = placements.counts
        return (sums.first / Double(counts.first), sums.second / Double(counts.second))
    }

    /// - Parameter areHosts: Whether each group is one host's stalls.
    /// - Returns: Nil with the reason if there can be no judgement.
    static func make(
        _ first: ComparedRuns, _ second: ComparedRuns, _ groups: [JudgedGroup],
        rest: JudgedGroup, all: JudgedGroup? = nil, isWatched: Bool, exposure: Double,
        areHosts: Bool
    ) -> (judge: ComparisonJudge?, reason: String?) {
        guard case .known(var one) = first, case .known(var other) = second else {
            for case .unknown(let reason) in [first, second] { return (nil, reason) }
            return (nil, nil)
        }
        if isWatched {
            one.removeAll { ($0.watched ?? .zero) <= .zero }
            other.removeAll { ($0.watched ?? .zero) <= .zero }
        }
        let (placements, reason) = UnitPlacements.make(one, other, areWatched: isWatched)
        guard let placements else { return (nil, reason) }
        let stalls = all.map { [$0] } ?? groups + [rest]
        if !isWatched,
            UnseenUnits.areMany(one, stalls.flatMap(\.first), placements.kind)
                || UnseenUnits.areMany(other, stalls.flatMap(\.second), placements.kind)
        {
            return (nil, "\(placements.kind.rawValue)s without a stall are not known")
        }
        if areHosts, placements.kind == .host {
            // A host on one side or the other proves nothing about it; all of them together may.
            let all = groups + [rest]
            let judge = ComparisonJudge(
                placements, groups.map { _ in JudgedGroup(first: [], second: []) },
                rest: JudgedGroup(
                    first: all.flatMap(\.first), second: all.flatMap(\.second)),
                isWatched: isWatched, odds: exposure, leftOut: "each is one host")
            return (judge, nil)
        }
        return (
            ComparisonJudge(
                placements, groups, rest: rest, all: all, isWatched: isWatched, odds: exposure),
            nil
        )
    }

    /// The groups that are judged together. Their total is another one, unless it is the only one.
    private var family: Range<Int> { 0..<(judged.count > 2 ? judged.count : 1) }

    /// The intervals of the groups, then of the total; and whether each differs significantly, corrected for their
    /// number.
    func verdicts() -> [(low: Double, high: Double, isSignificant: Bool)] {
        let differing = differing(ratio: 1)
        var lowestRatios: [NewGroupBound: Double] = [:]
        return places.map { place in
            guard let place else { return (0, .infinity, false) }
            let bounds = interval(judged[place], &lowestRatios)
            return (bounds.low, bounds.high, differing[place] != .neither)
        }
    }

    /// Whether a group is among those that are judged.
    func isJudged(_ group: Int) -> Bool { places[group] != nil }

    /// Whether any group, or the total, lost more than `limit` times as much, beyond chance.
    func exceeds(_ limit: Double) -> Bool { differing(ratio: limit).contains(.more) }

    private enum Difference { case less, neither, more }

    /// The groups that differ from a ratio so that chance does not explain it as one of all groups.
    ///
    /// **Source:** Westfall and Young 1993, the step-down maxT procedure: each group is compared with the largest
    /// statistic, in each placement, of those groups that differ no more than it does.
    private func differing(ratio: Double) -> [Difference] {
        let statistics = judged.map { $0.placed.statistics(ratio, placements) }
        var found = Array(repeating: Difference.neither, count: judged.count)
        var largest = Array(repeating: 0.0, count: UnitPlacements.count)
        var shares: [(place: Int, share: Double)] = []
        // From the least on.
        let order = family.sorted { abs(statistics[$0].actual) < abs(statistics[$1].actual) }
        for place in order {
            let bar = abs(statistics[place].actual) - 1e-9
            var count = 1
            for (index, statistic) in statistics[place].placed.enumerated() {
                largest[index] = max(largest[index], abs(statistic))
                if largest[index] >= bar { count += 1 }
            }
            shares.append((place, Double(count) / Double(UnitPlacements.count + 1)))
        }
        for (place, share) in shares.reversed() {
            guard share <= 2 * Self.tail else { break }
            let isMore = statistics[place].actual > 0
            guard !isLuck(judged[place], ratio: ratio, isMore: isMore) else { continue }
            found[place] = isMore ? .more : .less
        }
        // The total of a single group is that group.
        if family.count == 1, judged.count == 2 { found[1] = found[0] }
        return found
    }

    // MARK: Luck of stalls

    /// Whether few stalls explain the difference if each came on either side by its watched time and the ratio.
    ///
    /// Where the sides were watched for about as long as each other, a placement is as likely as the actual one if the
    /// ratio is 1, and the placements suffice. Otherwise the sides have different numbers of stalls, and of few long
    /// ones the placements show too much.
    private func isLuck(_ group: Judged, ratio: Double, isMore: Bool) -> Bool {
        guard !placements.isEven || (isMore ? ratio > 1 : ratio < 1) else { return false }
        let probability = group.probability(ofMore: isMore, chance: chance(ratio))
        guard probability * Double(family.count) > Self.tail else { return false }
        guard let bound = group.bound else { return true }
        return bound.probability(ratio: isMore ? ratio : 1 / ratio) * Double(family.count)
            > Self.tail
    }

    /// The chance that a stall is on the second side.
    private func chance(_ ratio: Double) -> Double {
        min(max(ratio * odds / (1 + ratio * odds), 1e-12), 1 - 1e-12)
    }

    /// - Parameter lowestRatios: What was found for the groups before: many have as many hosts as others.
    private func interval(
        _ group: Judged, _ lowestRatios: inout [NewGroupBound: Double]
    ) -> (low: Double, high: Double) {
        guard group.first.count > 0 || group.second.count > 0 else { return (0, .infinity) }
        var (low, high) = group.placed.interval(tail: Self.tail)
        if group.second.count == 0 { low = 0 }
        if group.first.count == 0 { high = .infinity }
        // As `isLuck`: a difference that only the placements exclude is not excluded.
        if low > (placements.isEven ? 1 : 0),
            let least = lowerBound(than: low, of: group, isMore: true, &lowestRatios)
        {
            low = placements.isEven ? max(1, least) : least
        }
        if high < (placements.isEven ? 1 : .infinity),
            let least = lowerBound(than: 1 / high, of: group, isMore: false, &lowestRatios)
        {
            high = placements.isEven ? min(1, 1 / least) : 1 / least
        }
        return (low, high)
    }

    /// The ratio up to which few stalls do not explain the difference; of the first side's time to the second's unless
    /// `isMore`. Nil if it is not below `ratio`: then no search is needed.
    private func lowerBound(
        than ratio: Double, of group: Judged, isMore: Bool,
        _ lowestRatios: inout [NewGroupBound: Double]
    ) -> Double? {
        func isRare(_ ratio: Double) -> Bool {
            group.probability(ofMore: isMore, chance: chance(isMore ? ratio : 1 / ratio))
                < Self.tail
        }
        if ratio.isFinite, isRare(ratio) { return nil }
        var least = (isMore ? group.share > 0 : group.share < 1) ? BinomialBound.bisect(isRare) : 0
        if let bound = group.bound {
            let lowest = lowestRatios[bound] ?? bound.lowestRatio(tail: Self.tail)
            lowestRatios[bound] = lowest
            least = max(least, lowest)
        }
        return least < ratio ? least : nil
    }
}

extension ComparisonJudge.Judged {
    fileprivate init(
        _ sums: ComparisonJudge.Sums, _ seconds: [Double], _ placements: UnitPlacements,
        _ watched: (first: Double, second: Double)
    ) {
        (first, second) = (sums.first, sums.second)
        placed = PlacedGroup(seconds, placements)
        let (one, other) = (first.total / .seconds(1), second.total / .seconds(1))
        share = one + other > 0 ? other / (one + other) : 0
        let squares = first.squares + second.squares
        count = squares > 0 ? (one + other) * (one + other) / squares : 0
        if first.count == 0 || second.count == 0 {
            let sum = seconds.reduce(0, +)
            let unitSquares = seconds.reduce(0) { $0 + $1 * $1 }
            count = min(count, unitSquares > 0 ? sum * sum / unitSquares : 0)
            bound = NewGroupBound(seconds, placements, isSecond: first.count == 0)
        } else {
            scatter = HostScatter(
                of: seconds,
                squares: zip(sums.squares, placements.units).map { squares, unit in
                    let hours = unit.isSecond ? watched.second : watched.first
                    return squares / (hours * hours)
                }, placements)
        }
    }

    /// The probability of a share as high as this group's on the second side, or as low, if each independent stall is on
    /// it with a chance.
    fileprivate func probability(ofMore isMore: Bool, chance: Double) -> Double {
        var count = count
        if let scatter {
            count /= scatter.dispersion(((1 - share) / (1 - chance), share / chance))
        }
        // Squares are added up in the order in which stalls are stored: no answer may depend on their last digits.
        count = (count * 1e6).rounded() / 1e6
        return isMore
            ? BinomialBound.probability(of: share * count, orMoreOf: count, chance: chance)
            : BinomialBound.probability(
                of: (1 - share) * count, orMoreOf: count, chance: 1 - chance)
    }
}

extension NewGroupBound {
    /// - Parameters:
    ///   - seconds: The time that each unit lost.
    ///   - isSecond: Whether the group is on the second side.
    fileprivate init(_ seconds: [Double], _ placements: UnitPlacements, isSecond: Bool) {
        having = seconds.count { $0 > 0 }
        let sides = [isSecond, !isSecond].map { side in
            placements.units.filter { $0.isSecond == side }.map(\.watched)
        }
        units = sides[0].count
        let (own, other) = (sides[0].reduce(0, +), sides[1].reduce(0, +))
        let squares = sides[1].reduce(0) { $0 + $1 * $1 }
        others = squares > 0 ? other * other / squares : 0
        exposure =
            other > 0 && units > 0
            ? own / Double(units) / (other / Double(sides[1].count)) : .infinity
    }
}
