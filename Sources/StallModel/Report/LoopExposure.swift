// How long a loop was watched, and its activity in that time: the denominator of rates.

/// An interval of one loop's watched time, usually a minute.
public struct LoopExposure: Hashable, Sendable {
    /// The process.
    public var run: ProcessRun
    /// The target's name.
    public var loop: String
    /// The threshold in force.
    public var threshold: Duration
    /// When the interval began, on the wall clock.
    public var start: UnixTime
    /// Its length. A loop that only waits is not woken to be measured: its interval is longer than a minute.
    public var watched: Duration
    /// The part of it in which the loop was not waiting for events.
    public var busy: Duration
    /// How long the loop's thread was runnable without a CPU.
    public var readyDelay: Duration
    /// The number of busy spans of at least 100 ms, shorter than the threshold, and of longer ones that cannot be proven to
    /// be stalls.
    public var microStallCount: Int
    /// The total length of those spans.
    public var microStallTime: Duration
    /// The iterations that ended in it, by how long each was busy.
    public var lengths: LengthHistogram

    /// The number of iterations that ended in it.
    public var iterations: Int { lengths.count }

    package init(
        run: ProcessRun, loop: String, threshold: Duration, start: UnixTime, watched: Duration,
        busy: Duration = .zero, readyDelay: Duration = .zero, microStallCount: Int = 0,
        microStallTime: Duration = .zero, lengths: LengthHistogram = LengthHistogram()
    ) {
        self.run = run
        self.loop = loop
        self.threshold = threshold
        self.start = start
        self.watched = watched
        self.busy = busy
        self.readyDelay = readyDelay
        self.microStallCount = microStallCount
        self.microStallTime = microStallTime
        self.lengths = lengths
    }
}

/// A histogram of iteration lengths, in buckets of microseconds: 0 to 7, then eight per power of two, so that a bucket
/// is at most an eighth wide. The loop uses the same buckets (CLinux/stall_beacon.h).
public struct LengthHistogram: Hashable, Sendable {
    /// The counts of buckets that are not empty.
    package var counts: [Int: Int]

    package init(counts: [Int: Int] = [:]) { self.counts = counts.filter { $0.value > 0 } }

    package static let bucketCount = 272
    /// Counts saturate here, so that every sum of them fits into 64 bits.
    package static let largestCount = 1 << 48

    /// The number of iterations.
    public var count: Int { counts.values.reduce(0, +) }

    /// The length that this share of the iterations does not exceed, rounded up to the bucket's bound; nil without any.
    public func quantile(_ share: Double) -> Duration? {
        let wanted = max(1, Int((Double(count) * share).rounded(.up)))
        var seen = 0
        for bucket in 0..<Self.bucketCount {
            guard let count = counts[bucket] else { continue }
            seen += count
            if seen >= wanted { return Self.bounds(ofBucket: bucket).upperBound }
        }
        return nil
    }

    /// Adds the counts of another histogram.
    package mutating func add(_ other: LengthHistogram) {
        counts.merge(other.counts) { min($0 + $1, Self.largestCount) }
    }

    /// The lengths of a bucket, upper bound excluded.
    package static func bounds(ofBucket bucket: Int) -> Range<Duration> {
        func lowest(_ bucket: Int) -> Duration {
            guard bucket >= 8 else { return .microseconds(bucket) }
            return .microseconds(Int64(8 + bucket % 8) << Int64(bucket / 8 - 1))
        }
        return lowest(bucket)..<lowest(bucket + 1)
    }
}
