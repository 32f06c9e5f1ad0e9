// How long to wait before the next attempt: full jitter, so that a thousand senders that lost one collector do not come
// back at once.

/// The waiting times between attempts.
///
/// **Source:** "Exponential Backoff And Jitter", AWS Architecture Blog, 2015: full jitter.
package struct Backoff: Sendable {
    /// The longest first wait, and the longest of all, in seconds.
    package var first = 1.0
    package var longest = 600.0
    private var attempts = 0

    package init() {}

    /// The collector answered: the next failure is a first one.
    package mutating func reset() { attempts = 0 }

    /// The message about a collector that requests a longer wait than the limit; empty for a shorter one.
    package func words(asked: Int?) -> String {
        guard let asked, Double(asked) > longest else { return "" }
        return " and asks for \(asked) s, of which at most \(Int(longest)) s are waited"
    }

    /// - Parameter asked: The wait that the collector requests. The wait is not shorter, but no longer than the longest
    ///   of all: one wrong answer must not silence a sender for a day.
    /// - Returns: Seconds.
    package mutating func next(
        asked: Int?, using random: inout some RandomNumberGenerator
    ) -> Double {
        let limit = min(longest, first * Double(1 << min(attempts, 20)))
        attempts += 1
        let wait = Double.random(in: 0...limit, using: &random)
        return max(wait, min(Double(asked ?? 0), longest), 0.1)
    }
}
