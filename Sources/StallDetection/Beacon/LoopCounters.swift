// A loop's own counters (CLinux/stall_beacon.h), and their differences between two readings.

internal import CLinux
package import StallModel

/// A reading of a loop's counters. Plain memory, because the watchdog reads it where it may not allocate.
package struct LoopCounters: Sendable {
    package var at: MonotonicInstant
    /// Busy time up to `at`, the current span included.
    package var busy: Duration
    var microStallCount: UInt64
    var microStallTime: UInt64
    var lengths: InlineArray<272, UInt32>
    var runDelay: Duration?
}

/// A loop's activity in an interval of watched time.
package struct LoopMeasure: Equatable, Sendable {
    package var began: MonotonicInstant
    package var watched: Duration
    package var busy: Duration
    package var readyDelay: Duration
    package var microStallCount: Int
    package var microStallTime: Duration
    package var lengths: LengthHistogram
}

extension LoopMeasure {
    /// The differences between a reading and a later one.
    package init(from first: LoopCounters, to last: LoopCounters) {
        var counts: [Int: Int] = [:]
        for bucket in first.lengths.indices where first.lengths[bucket] != last.lengths[bucket] {
            // The loop's counters are 32 bits wide and wrap.
            counts[bucket] = Int(last.lengths[bucket] &- first.lengths[bucket])
        }
        let watched = last.at - first.at
        let delay = (last.runDelay ?? .zero) - (first.runDelay ?? .zero)
        self.init(
            began: first.at, watched: watched,
            busy: min(watched, max(.zero, last.busy - first.busy)),
            readyDelay: min(watched, max(.zero, delay)),
            microStallCount: Int(last.microStallCount &- first.microStallCount),
            microStallTime: .nanoseconds(
                Int64(clamping: last.microStallTime &- first.microStallTime)),
            lengths: LengthHistogram(counts: counts))
    }
}
