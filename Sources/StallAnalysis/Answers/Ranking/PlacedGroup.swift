// How one group compares in the actual placement of hosts and in random ones.

internal import Glibc

private func add(_ time: Double, _ moves: UnsafeBufferPointer<Double>, to sums: inout [Double]) {
    sums.withUnsafeMutableBufferPointer { sums in
        for place in 0..<min(sums.count, moves.count) { sums[place] += time * moves[place] }
    }
}

/// The smallest values of many, without sorting the others.
private struct SmallestValues {
    /// In ascending order.
    private var values: [Double]

    init(_ count: Int) { values = Array(repeating: .infinity, count: count) }

    var largest: Double { values[values.count - 1] }

    mutating func add(_ value: Double) {
        guard value < largest else { return }
        var place = values.count - 1
        while place > 0, value < values[place - 1] {
            values[place] = values[place - 1]
            place -= 1
        }
        values[place] = value
    }
}

/// A group's time lost by unit, and what the second side's would be in each random placement.
///
/// The hypothesis that the second side loses `ratio` times as much as the first divides the second side's times by it.
/// Each unit's time less what its watched time lets expect is its residual, and the statistic is the sum of the second
/// side's residuals over the standard deviation that the placements give it. This deviation is the same in all of them,
/// so that a placement is as extreme as the actual one for all ratios on one side of a threshold: intervals need no
/// search.
struct PlacedGroup {
    /// The time of the first and of the second side.
    private let first, second: Double
    /// By placement: what the second side gains of the first side's time, and of its own if the ratio is 1; each less
    /// what the change of its watched time lets expect.
    private let gained, kept: [Double]
    private let seconds: [Double]

    /// - Parameter seconds: By unit, divided by the mean watched time of its side's units.
    init(_ seconds: [Double], _ placements: UnitPlacements) {
        self.seconds = seconds
        let length = UnitPlacements.count
        var (first, second) = (0.0, 0.0)
        var gained = Array(repeating: 0.0, count: length)
        var kept = gained
        placements.moves.withUnsafeBufferPointer { moves in
            for (unit, time) in seconds.enumerated() where time != 0 {
                let row = UnsafeBufferPointer(rebasing: moves[unit * length..<(unit + 1) * length])
                if placements.units[unit].isSecond {
                    second += time
                    add(-time, row, to: &kept)
                } else {
                    first += time
                    add(time, row, to: &gained)
                }
            }
        }
        let (perFirst, perSecond) = (first / placements.exposure, second / placements.exposure)
        for (place, change) in placements.exposureChanges.enumerated() where change != 0 {
            gained[place] -= perFirst * change
            kept[place] -= perSecond * change
        }
        (self.first, self.second, self.gained, self.kept) = (first, second, gained, kept)
    }

    /// The statistic of the actual placement, and of each random one.
    func statistics(
        _ ratio: Double, _ placements: UnitPlacements
    ) -> (actual: Double, placed: [Double]) {
        let rate = (first + second / ratio) / placements.exposure
        let residuals = zip(seconds, placements.units).map { time, unit in
            (unit.isSecond ? time / ratio : time) - rate * unit.exposure
        }
        var (actual, variance) = (0.0, 0.0)
        for members in placements.strata {
            let count = Double(members.count)
            let mean = members.reduce(0) { $0 + residuals[$1] } / count
            var (squares, seconds) = (0.0, 0.0)
            for unit in members {
                let distance = residuals[unit] - mean
                squares += distance * distance
                guard placements.units[unit].isSecond else { continue }
                actual += distance
                seconds += 1
            }
            guard count > 1 else { continue }
            variance += squares * seconds * (count - seconds) / (count * (count - 1))
        }
        // A rest of rounding is no variance.
        guard variance.squareRoot() > 1e-9 * (first + second / ratio) else {
            return (0, Array(repeating: 0, count: gained.count))
        }
        let scale = 1 / variance.squareRoot()
        let placed = zip(gained, kept).map { gained, kept in
            (actual + gained + kept / ratio) * scale
        }
        return (actual * scale, placed)
    }

    /// The ratios for which the actual placement is not among the rarest on a side.
    ///
    /// - Parameter tail: The share of placements that is rare.
    func interval(tail: Double) -> (low: Double, high: Double) {
        // The actual placement is one of them.
        let rare = Int(tail * Double(gained.count + 1))
        var lows = SmallestValues(rare)
        // Negated: the largest are wanted.
        var highs = SmallestValues(rare)
        for (gain, kept) in zip(gained, kept) {
            // From which ratio on a placement's statistic is as high as the actual one, and up to which it is as low.
            let loss = -kept
            if gain > 0, loss > 0 {
                lows.add(loss / gain)
                highs.add(-loss / gain)
            } else if (gain == 0 && loss == 0) || (gain < 0 && loss < 0) {
                // As extreme for all ratios; or, of very uneven watched times, on the other side of a threshold: then
                // it counts for all, too.
                lows.add(0)
                highs.add(-.infinity)
            } else if gain >= 0, loss <= 0 {
                lows.add(0)
                highs.add(0)
            } else {
                // From no ratio on, and up to any.
                highs.add(-.infinity)
            }
        }
        // Not `-0`.
        return (lows.largest, 0 - highs.largest)
    }
}
