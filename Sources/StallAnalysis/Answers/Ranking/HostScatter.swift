// How much the time of a group varies from host to host, in comparison with independent stalls: those come in bursts,
// and one host has more than another. Pure.

/// The scatter of a group's time over the units of both sides.
///
/// Each unit's residual is its time less what its watched time lets expect, as a multiple of its side's mean. A
/// hypothesis says how much time each side should have lost; where that is more than it lost, its scatter counts for
/// less, the more so the fewer hosts its time is on: one host shows no scatter. So three stalls on one side, where
/// fifteen are expected, do not hide that the other side's come five at a time.
///
/// Hosts that are on both sides are compared with themselves: what their two parts have in common, by the covariance,
/// is the host's own and no scatter.
struct HostScatter {
    /// The squares of residuals, and what they would add up to if stalls were independent.
    fileprivate struct Part {
        var squares = 0.0
        var independent = 0.0
        /// How many units of equal time have as much scatter.
        var spread = 1.0
    }

    private var first = Part()
    private var second = Part()

    /// - Parameters:
    ///   - seconds: By unit, divided by the mean watched time of its side's units.
    ///   - squares: The squares of the lengths of each unit's stalls, in the square of this unit.
    init(of seconds: [Double], squares: [Double], _ placements: UnitPlacements) {
        let units = placements.units
        var rates = (first: 0.0, second: 0.0)
        for (time, unit) in zip(seconds, units) {
            if unit.isSecond { rates.second += time } else { rates.first += time }
        }
        let counts = placements.counts
        rates = (rates.first / Double(counts.first), rates.second / Double(counts.second))
        guard rates.first > 0, rates.second > 0 else { return }
        func rate(_ unit: Int) -> Double { units[unit].isSecond ? rates.second : rates.first }
        func residual(_ unit: Int) -> Double { seconds[unit] / rate(unit) - units[unit].exposure }
        func independent(_ unit: Int) -> Double { squares[unit] / (rate(unit) * rate(unit)) }
        func part(_ members: [Int]) -> Part {
            guard members.count > 1 else { return Part() }
            let count = Double(members.count)
            let residuals = members.map(residual)
            let mean = residuals.reduce(0, +) / count
            let sum = residuals.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
            return Part(
                squares: sum * count / (count - 1),
                independent: members.reduce(0) { $0 + independent($1) })
        }
        var pairs: [(first: Int, second: Int)] = []
        for members in placements.strata {
            let sides = (
                first: members.filter { !units[$0].isSecond },
                second: members.filter { units[$0].isSecond }
            )
            if sides.first.count == 1, sides.second.count == 1 {
                pairs.append((sides.first[0], sides.second[0]))
            } else {
                first.add(part(sides.first))
                second.add(part(sides.second))
            }
        }
        first.spread = Self.spread(zip(seconds, units).filter { !$1.isSecond }.map { $0.0 })
        second.spread = Self.spread(zip(seconds, units).filter { $1.isSecond }.map { $0.0 })
        guard pairs.count > 1 else { return }
        var common = 0.0
        for pair in pairs {
            let residuals = (residual(pair.first), residual(pair.second))
            common += residuals.0 * residuals.1
            first.add(residuals.0 * residuals.0, independent(pair.first))
            second.add(residuals.1 * residuals.1, independent(pair.second))
        }
        first.squares = max(0, first.squares - common)
        second.squares = max(0, second.squares - common)
    }

    private static func spread(_ seconds: [Double]) -> Double {
        let sum = seconds.reduce(0, +)
        return max(1, sum * sum / seconds.reduce(0) { $0 + $1 * $1 })
    }

    /// How many times as much the time varies as that of independent stalls: at least 1.
    ///
    /// - Parameter shares: The time that each side lost, as a multiple of what the hypothesis says.
    func dispersion(_ shares: (first: Double, second: Double)) -> Double {
        let weights = (first.weight(shares.first), second.weight(shares.second))
        let squares = weights.0 * first.squares + weights.1 * second.squares
        let independent = weights.0 * first.independent + weights.1 * second.independent
        return independent > 0 ? max(1, squares / independent) : 1
    }
}

extension HostScatter.Part {
    /// The weight of its side: as it is for the hypothesis if all time is on one unit, as it was if it is on many.
    fileprivate func weight(_ share: Double) -> Double { 1 + (share * share - 1) / spread }

    fileprivate mutating func add(_ other: HostScatter.Part) {
        add(other.squares, other.independent)
    }

    fileprivate mutating func add(_ squares: Double, _ independent: Double) {
        self.squares += squares
        self.independent += independent
    }
}
