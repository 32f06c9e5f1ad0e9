// Exposure out of its columns; a row is checked whenever it comes out of a file.

package import StallModel
package import StallStore

extension ExposureRow {
    /// The columns that `init(_:)` reads, in its order.
    ///
    /// - Parameter lengths: Otherwise there are none in the rows.
    package static func columns(lengths: Bool = true) -> String {
        """
        exposure.revision, exposure.loop, exposure.start_us, exposure.watched_ns, exposure.busy_ns,
        exposure.ready_delay_ns, exposure.micro_stall_count, exposure.micro_stall_ns,
        \(lengths ? "exposure.lengths" : "x''")
        """
    }

    package init(_ row: Statement) throws(StoreError) {
        self.init(
            revision: try row.integer(), loop: try row.integer(), start_us: try row.time_us(),
            watched_ns: try row.limited_ns(), busy_ns: try row.limited_ns(),
            readyDelay_ns: try row.limited_ns(),
            microStallCount: try row.limited(0...ValueLimits.count, "count"),
            microStall_ns: try row.limited_ns(), lengths: LengthHistogram())
        guard let lengths = LengthHistogram(encoded: row.blob()) else {
            throw row.damage("iteration lengths are not a histogram")
        }
        self.lengths = lengths
    }

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
                count <= Self.largestCount, gap < UInt64(Self.bucketCount - last)
            else { return nil }
            last += Int(gap)
            counts[last] = min((counts[last] ?? 0) + Int(count), Self.largestCount)
        }
        self.init(counts: counts)
    }
}
