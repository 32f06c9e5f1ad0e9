// Bounds on a share, for few observations. Pure.

internal import Glibc

/// Bounds of a share, from a number of observations that need not be whole.
enum BinomialBound {
    /// The probability that a beta distribution gives at most `value`: the regularized incomplete beta function.
    ///
    /// **Source:** Lentz's continued fraction; Abramowitz and Stegun 26.5.8.
    static func beta(_ first: Double, _ second: Double, upTo value: Double) -> Double {
        guard value > 0 else { return 0 }
        guard value < 1 else { return 1 }
        // The fraction converges fast up to the mean; beyond it, from the other side.
        return value <= (first + 1) / (first + second + 2)
            ? fraction(first, second, value) : 1 - fraction(second, first, 1 - value)
    }

    private static func fraction(_ first: Double, _ second: Double, _ value: Double) -> Double {
        let front = exp(
            lgamma(first + second) - lgamma(first) - lgamma(second) + first * log(value)
                + second * log1p(-value))
        func atLeastTiny(_ number: Double) -> Double { abs(number) < 1e-300 ? 1e-300 : number }
        var upper = 1.0
        var lower = 1 / atLeastTiny(1 - (first + second) * value / (first + 1))
        var fraction = lower
        func add(_ term: Double) {
            lower = 1 / atLeastTiny(1 + term * lower)
            upper = atLeastTiny(1 + term / upper)
            fraction *= lower * upper
        }
        for step in 1...300 {
            let count = Double(step)
            add(count * (second - count) * value / ((first + 2 * count - 1) * (first + 2 * count)))
            add(
                -(first + count) * (first + second + count) * value
                    / ((first + 2 * count) * (first + 2 * count + 1)))
            if abs(lower * upper - 1) < 1e-12 { break }
        }
        return min(max(front * fraction / first, 0), 1)
    }

    /// The probability of at least `hits` of `trials` where each is one with this chance.
    static func probability(of hits: Double, orMoreOf trials: Double, chance: Double) -> Double {
        guard hits > 1e-9 else { return 1 }
        return beta(hits, trials - hits + 1, upTo: chance)
    }

    /// The largest value, from 1e-9 to 1e9, for which a condition that turns from true to false is true.
    static func bisect(_ holds: (Double) -> Bool) -> Double {
        var (low, high) = (-20.8, 20.8)
        for _ in 0..<48 {
            let middle = (low + high) / 2
            if holds(exp(middle)) { low = middle } else { high = middle }
        }
        return exp(low)
    }
}
