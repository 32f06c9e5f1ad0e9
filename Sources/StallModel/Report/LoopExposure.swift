// How much of a loop's life was watched, and what it did meanwhile: what rates are given per.

/// A stretch of one loop's watched time, usually a minute.
public struct LoopExposure: Hashable, Sendable {
    /// The process.
    public var run: ProcessRun
    /// The name the loop is watched under.
    public var loop: String
    /// What counted as a stall.
    public var threshold: Duration
    /// When the stretch began, on the wall clock.
    public var start: UnixTime
    /// How long it is. A loop that only waits is not woken to be counted: then it is longer than a minute.
    public var watched: Duration
    /// The part of it that the loop was not waiting for events.
    public var busy: Duration
    /// How long the loop's thread was ready to run and waited for a CPU.
    public var readyDelay: Duration
    /// Busy spans of 100 ms up to the threshold.
    public var microStallCount: Int
    /// What they add up to.
    public var microStallTime: Duration
    /// The iterations that ended in it, by the time each was busy.
    public var lengths: LengthHistogram

    /// How many iterations ended in it.
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

/// How many iterations were how long: in buckets of microseconds, 0 to 7 and then eight to each power of two, so that a
/// bucket is at most an eighth wide. The loop counts in the same buckets (CLinux/stall_beacon.h).
public struct LengthHistogram: Hashable, Sendable {
    /// The counts of buckets that are not empty.
    package var counts: [Int: Int]

    package init(counts: [Int: Int] = [:]) { self.counts = counts.filter { $0.value > 0 } }

    package static let bucketCount = 272
    /// A bucket counts no further: all of them together, however they are summed, stay a number of 64 bits.
    package static let largestCount = 1 << 48

    /// How many iterations there are.
    public var count: Int { counts.values.reduce(0, +) }

    /// The length that this share of the iterations does not exceed, up to the bucket's width; nil without any.
    public func quantile(_ share: Double) -> Duration? {
        let wanted = max(1, Int((Double(count) * share).rounded(.up)))
        var seen = 0
        for bucket in counts.keys.sorted() {
            seen += counts[bucket]!
            if seen >= wanted { return Self.bounds(ofBucket: bucket).upperBound }
        }
        return nil
    }

    /// Adds the counts of another histogram.
    package mutating func add(_ other: LengthHistogram) {
        counts.merge(other.counts) { min($0 + $1, Self.largestCount) }
    }

    /// The lengths that a bucket stands for: from its lower bound up to, not including, its upper bound.
    package static func bounds(ofBucket bucket: Int) -> Range<Duration> {
        func lowest(_ bucket: Int) -> Duration {
            guard bucket >= 8 else { return .microseconds(bucket) }
            return .microseconds(Int64(8 + bucket % 8) << Int64(bucket / 8 - 1))
        }
        return lowest(bucket)..<lowest(bucket + 1)
    }
}
