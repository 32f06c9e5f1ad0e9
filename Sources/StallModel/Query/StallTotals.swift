/// Number and total duration of stalls.
package struct StallTotals: Hashable, Sendable {
    package var count = 0
    package var total = Duration.zero
    /// The sum of the squared durations, in seconds: a measure of their variance.
    package var squares = 0.0
    package var longest = Duration.zero

    package init() {}

    package mutating func add(_ duration: Duration) {
        let seconds = duration / .seconds(1)
        count += 1
        total += duration
        squares += seconds * seconds
        longest = max(longest, duration)
    }

    package mutating func add(_ other: StallTotals) {
        count += other.count
        total += other.total
        squares += other.squares
        longest = max(longest, other.longest)
    }
}
