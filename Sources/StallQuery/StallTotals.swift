package import StallModel

/// Number and total duration of stalls.
package struct StallTotals: Hashable, Sendable {
    package var count = 0
    package var total = Duration.zero
    /// The sum of the squared durations, in seconds: a measure of their variance.
    package var squares = 0.0
    package var longest = Duration.zero
    /// The part of the total in which the threads waited for a CPU or were stopped, as far as known.
    package var delayed = Duration.zero
    /// The part that was the threads' own time.
    package var own: Duration { total - delayed }

    package init() {}

    package mutating func add(_ duration: Duration, delayed: Duration = .zero) {
        let seconds = duration / .seconds(1)
        count += 1
        total += duration
        squares += seconds * seconds
        longest = max(longest, duration)
        self.delayed += delayed
    }

    package mutating func add(_ other: StallTotals) {
        count.addSaturated(other.count)
        total += other.total
        squares += other.squares
        longest = max(longest, other.longest)
        delayed += other.delayed
    }
}

/// The stalls of a time range by day.
package struct DailyTotals: Hashable, Sendable {
    /// By day (days since 1970, UTC), without squares.
    package var days: [Int: StallTotals] = [:]
    /// When the first and the last of them began.
    package var first: UnixTime?
    package var last: UnixTime?

    package init() {}

    package var count: Int { days.values.reduce(0) { $0.addingSaturated($1.count) } }

    /// Adds stalls of a day.
    package mutating func add(_ totals: StallTotals, day: Int) {
        days[day, default: StallTotals()].add(totals)
    }

    /// Notes when the first and the last of some stalls began, in microseconds since 1970.
    package mutating func note(first_us: Int64, last_us: Int64) {
        let (first, last) = (UnixTime(microseconds: first_us), UnixTime(microseconds: last_us))
        self.first = min(self.first ?? first, first)
        self.last = max(self.last ?? last, last)
    }
}

extension [UnixTime] {
    /// The index of the part between these ordered bounds that contains the instant; nil outside of all.
    package func part(of time: UnixTime) -> Int? {
        guard let first, let last, time >= first, time < last else { return nil }
        var (low, high) = (0, count - 1)
        while high - low > 1 {
            let middle = (low + high) / 2
            if self[middle] <= time { low = middle } else { high = middle }
        }
        return low
    }
}
