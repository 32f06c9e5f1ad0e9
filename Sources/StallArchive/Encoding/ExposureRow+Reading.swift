// Exposure out of its columns; a row is checked whenever it comes out of a file.

package import StallModel
package import StallStore

extension Statement {
    /// An exposure whose columns begin with `watched_ns` at `first`, as `ExposureRow.measures` lists them.
    package func exposure(revision: Int64, loop: Int64, start_us: Int64, at first: CInt)
        throws(StoreError)
        -> ExposureRow
    {
        guard let lengths = LengthHistogram(encoded: blob(at: first + 5)) else {
            throw damage("iteration lengths are not a histogram")
        }
        guard ValueLimits.readableTimes.contains(start_us) else {
            throw damage("\(start_us) in start_us is not a time in microseconds")
        }
        let count = try limited(at: first + 3, 0...ValueLimits.count, "count")
        return ExposureRow(
            revision: revision, loop: loop, start_us: start_us,
            watched_ns: try limited_ns(at: first), busy_ns: try limited_ns(at: first + 1),
            readyDelay_ns: try limited_ns(at: first + 2), microStallCount: count,
            microStall_ns: try limited_ns(at: first + 4), lengths: lengths)
    }
}

extension ExposureRow {
    /// The columns that `Statement.exposure` reads, in its order.
    package static let measures = "\(totals), exposure.lengths"
    package static let measuresWithoutLengths = "\(totals), x''"
    private static let totals = """
        exposure.watched_ns, exposure.busy_ns, exposure.ready_delay_ns, exposure.micro_stall_count,
        exposure.micro_stall_ns
        """

    /// The part of the stretch that lies between two instants; its counts are assumed to be spread evenly.
    package func part(from since: UnixTime?, until: UnixTime?) -> ExposureRow {
        let end_us = start_us.addingReportingOverflow(watched_ns / 1000)
        let first = max(start_us, since?.microseconds ?? .min)
        let last = min(end_us.overflow ? .max : end_us.partialValue, until?.microseconds ?? .max)
        // The nanoseconds below a microsecond belong to the stretch's end.
        guard first > start_us || last < end_us.partialValue else { return self }
        var part = self
        part.start_us = first
        part.watched_ns = min(watched_ns, max(0, last - first) * 1000)
        let share = Double(part.watched_ns) / Double(max(watched_ns, 1))
        func scaled(_ value: Int64) -> Int64 { Int64((Double(value) * share).rounded()) }
        part.busy_ns = scaled(busy_ns)
        part.readyDelay_ns = scaled(readyDelay_ns)
        part.microStallCount = scaled(microStallCount)
        part.microStall_ns = scaled(microStall_ns)
        part.lengths = LengthHistogram(
            counts: lengths.counts.mapValues { Int(scaled(Int64($0))) })
        return part
    }

    /// Adds another stretch of the loop. Sums end at the largest number: no store can stop us.
    package mutating func add(_ other: ExposureRow) {
        start_us = min(start_us, other.start_us)
        watched_ns = watched_ns.addingSaturated(other.watched_ns)
        busy_ns = busy_ns.addingSaturated(other.busy_ns)
        readyDelay_ns = readyDelay_ns.addingSaturated(other.readyDelay_ns)
        microStallCount = microStallCount.addingSaturated(other.microStallCount)
        microStall_ns = microStall_ns.addingSaturated(other.microStall_ns)
        lengths.add(other.lengths)
    }
}

extension LengthHistogram {
    /// Nil when the bytes are no histogram.
    package init?(encoded bytes: UnsafeRawBufferPointer) {
        var (counts, last): ([Int: Int], Int) = ([:], 0)
        var rest = bytes[...]
        while !rest.isEmpty {
            guard let gap = rest.popLEB128(), let count = rest.popDuration(),
                count < Self.largestCount, gap < UInt64(Self.bucketCount - last)
            else { return nil }
            last += Int(gap)
            counts[last, default: 0] += Int(count)
        }
        self.init(counts: counts)
    }
}
