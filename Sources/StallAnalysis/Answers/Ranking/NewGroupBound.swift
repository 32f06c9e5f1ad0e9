// How likely it is that a group is new, or gone, by chance: some hosts of one side have it, none of the other's. There is
// no time to divide by, and the hosts that have it say little of how often the others would. The evidence is the number of
// hosts that have it. Pure.

internal import Glibc

/// A group that some units of one side have, and none of the other's.
struct NewGroupBound: Hashable {
    /// The units that have it, of all on their side.
    var having, units: Int
    /// Those of the other side; fewer if few of them have most of its watched time.
    var others: Double
    /// How long a unit of the side that has it was watched, by the other side's.
    var exposure: Double

    /// The largest probability that any rate gives to as many units that have it, and none on the other side, where the
    /// rate is `ratio` times as high on the side that has it.
    ///
    /// If a unit stays without it with the probability q on the other side, it does with at least q to the power of the
    /// ratio on this one, whatever the rates of the units and the sizes of bursts: units of one rate are the worst case
    /// (Jensen). Where the ratio is below 1 the same holds with 1, of units that have it always or never. The logarithm
    /// is concave in the rate, so that its only maximum is found.
    func probability(ratio: Double) -> Double {
        let power = max(1, ratio * exposure)
        func logarithm(_ rate: Double) -> Double {
            let share = -expm1(-power * rate)
            let tail = BinomialBound.probability(
                of: Double(having), orMoreOf: Double(units), chance: share)
            return -others * rate + log(max(tail, 1e-300))
        }
        // At the upper end each unit has it.
        var (low, high) = (0.0, 40 / power)
        for _ in 0..<40 {
            let (left, right) = (low + (high - low) / 3, high - (high - low) / 3)
            if logarithm(left) < logarithm(right) { low = left } else { high = right }
        }
        return exp(logarithm((low + high) / 2))
    }

    /// The largest ratio whose probability is at most `tail`, or 0.
    func lowestRatio(tail: Double) -> Double {
        guard probability(ratio: 0) <= tail else { return 0 }
        return BinomialBound.bisect { probability(ratio: $0) <= tail }
    }
}
