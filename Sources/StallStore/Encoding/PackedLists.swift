// How a stack's places and a report's samples are written into one blob each. Part of the file
// format.

package import StallModel

/// One place of a stack: the number of a `location` row, and whether the unwinder guessed it.
package struct StackEntry: Hashable {
    package var location: Int64
    package var isGuessed: Bool

    package init(
        location: Int64, isGuessed: Bool
    ) {
        self.location = location
        self.isGuessed = isGuessed
    }
}

extension [StackEntry] {
    /// A number for each entry, the lowest bit for the guess.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count * 3)
        for entry in self {
            bytes.append(
                leb128: UInt64(bitPattern: entry.location) << 1 | (entry.isGuessed ? 1 : 0))
        }
        return bytes
    }

    /// Nil when the bytes are no such list.
    package init?(encoded bytes: UnsafeRawBufferPointer) {
        self = []
        var rest = bytes[...]
        while !rest.isEmpty {
            guard let number = rest.popLEB128() else { return nil }
            append(StackEntry(location: Int64(number >> 1), isGuessed: number & 1 == 1))
        }
    }
}

/// One look at a stalled thread, with the number of a `stack` row instead of the stack.
package struct StoredSample: Hashable {
    package var offset_ns: Int64
    /// Nil when it is what `sampleWeights` says.
    package var weight_ns: Int64?
    package var isLate: Bool
    package var thread: Int32
    package var method: CaptureMethod?
    package var stack: Int64?
    package var captureCost_ns: Int64
    package var failure: String?

    package init(
        offset_ns: Int64, weight_ns: Int64? = nil, isLate: Bool, thread: Int32,
        method: CaptureMethod? = nil, stack: Int64? = nil, captureCost_ns: Int64,
        failure: String? = nil
    ) {
        self.offset_ns = offset_ns
        self.weight_ns = weight_ns
        self.isLate = isLate
        self.thread = thread
        self.method = method
        self.stack = stack
        self.captureCost_ns = captureCost_ns
        self.failure = failure
    }
}

/// The first number of a sample: which of its facts follow.
private struct SampleFlags: OptionSet {
    var rawValue: UInt64
    static let isLate = SampleFlags(rawValue: 1)
    static let hasStack = SampleFlags(rawValue: 2)
    static let hasFailure = SampleFlags(rawValue: 4)
    /// Of the same thread as the sample before.
    static let sameThread = SampleFlags(rawValue: 8)
    /// The method of capture, in two bits: its raw value plus one, or zero.
    static let methodShift: UInt64 = 4
    static let methodMask: UInt64 = 3
    /// The weight is what `sampleWeights` says, and is left out.
    static let weightFollows = SampleFlags(rawValue: 64)
    static let end: UInt64 = 128
}

extension [StoredSample] {
    /// For each sample: flags, offset, weight (unless it follows from the rest) and cost in
    /// nanoseconds; then, as the flags say, the thread, the stack's number, and the failure as its
    /// length and UTF-8 bytes.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count * 20)
        var lastThread: Int32?
        for sample in self {
            var flags = SampleFlags()
            if sample.isLate { flags.insert(.isLate) }
            if sample.weight_ns == nil { flags.insert(.weightFollows) }
            if sample.stack != nil { flags.insert(.hasStack) }
            if sample.failure != nil { flags.insert(.hasFailure) }
            if sample.thread == lastThread { flags.insert(.sameThread) }
            let method = sample.method.map { UInt64($0.rawValue) + 1 } ?? 0
            bytes.append(leb128: flags.rawValue | method << SampleFlags.methodShift)
            bytes.append(leb128: UInt64(Swift.max(0, sample.offset_ns)))
            if let weight = sample.weight_ns {
                bytes.append(leb128: UInt64(Swift.max(0, weight)))
            }
            bytes.append(leb128: UInt64(Swift.max(0, sample.captureCost_ns)))
            if sample.thread != lastThread {
                bytes.append(leb128: UInt64(Swift.max(0, sample.thread)))
            }
            if let stack = sample.stack { bytes.append(leb128: UInt64(bitPattern: stack)) }
            if let failure = sample.failure { bytes.append(text: failure) }
            lastThread = sample.thread
        }
        return bytes
    }

    /// Nil when the bytes are no such list.
    package init?(encoded bytes: UnsafeRawBufferPointer) {
        self = []
        var samples = PackedSamples(bytes)
        while let sample = samples.next() { append(sample) }
        guard !samples.isDamaged else { return nil }
    }
}

/// Decodes a report's samples one by one.
package struct PackedSamples {
    private var rest: Slice<UnsafeRawBufferPointer>
    private var lastThread: Int32?
    private var count = 0
    /// The bytes are no list of samples.
    package private(set) var isDamaged = false

    package init(_ bytes: UnsafeRawBufferPointer) { rest = bytes[...] }

    /// The next sample; nil at the end, or where the list is damaged.
    package mutating func next() -> StoredSample? {
        guard !rest.isEmpty, !isDamaged else { return nil }
        let sample = count < ValueLimits.samplesOfReport ? decoded() : nil
        count += 1
        isDamaged = sample == nil
        return sample
    }

    private mutating func decoded() -> StoredSample? {
        guard let first = rest.popLEB128(), first < SampleFlags.end else { return nil }
        let flags = SampleFlags(rawValue: first)
        guard let offset = rest.popLimited() else { return nil }
        var weight: Int64?
        if !flags.contains(.weightFollows) {
            guard let written = rest.popLimited() else { return nil }
            weight = written
        }
        guard let cost = rest.popLimited() else { return nil }
        let thread =
            flags.contains(.sameThread)
            ? lastThread : rest.popLEB128().flatMap { Int32(exactly: $0) }
        guard let thread else { return nil }
        lastThread = thread
        var sample = StoredSample(
            offset_ns: offset, weight_ns: weight, isLate: flags.contains(.isLate),
            thread: thread, captureCost_ns: cost)
        let method = first >> SampleFlags.methodShift & SampleFlags.methodMask
        if method != 0 {
            guard let known = CaptureMethod(rawValue: UInt8(method - 1)) else { return nil }
            sample.method = known
        }
        if flags.contains(.hasStack) {
            guard let stack = rest.popDuration() else { return nil }
            sample.stack = stack
        }
        if flags.contains(.hasFailure) {
            guard let failure = rest.popText() else { return nil }
            sample.failure = failure
        }
        return sample
    }
}

extension [StoredSample] {
    /// The nanoseconds that each sample stands for, of a report that lasted so long.
    package func weights(in duration_ns: Int64) -> [Int64] {
        zip(self, impliedWeights(in: duration_ns)).map { $0.weight_ns ?? $1 }
    }

    /// Leaves out the weights that follow from the rest.
    package mutating func omitImpliedWeights(in duration_ns: Int64) {
        for (index, weight) in impliedWeights(in: duration_ns).enumerated()
        where self[index].weight_ns == weight {
            self[index].weight_ns = nil
        }
    }

    private func impliedWeights(in duration_ns: Int64) -> [Int64] {
        sampleWeights(
            map { $0.isLate || $0.stack == nil ? nil : $0.offset_ns }, of: duration_ns)
    }
}

extension DurationHistogram {
    /// For each bucket in use, in order: how many after the one before it (the first: after -1), and
    /// its count.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        var last = -1
        for (bucket, count) in entries {
            bytes.append(leb128: UInt64(bucket - last))
            bytes.append(leb128: UInt64(Swift.max(0, count)))
            last = bucket
        }
        return bytes
    }

    /// Adds what was encoded; false, with a part of it added, when the bytes are no such list.
    package mutating func add(encoded bytes: UnsafeRawBufferPointer) -> Bool {
        var rest = bytes[...]
        var bucket = -1
        while !rest.isEmpty {
            guard let step = rest.popLEB128(), let count = rest.popDuration(), step > 0, count > 0,
                step <= UInt64(Self.lastBucket - bucket)
            else { return false }
            bucket += Int(step)
            add(bucket: bucket, count: count)
        }
        return true
    }
}

extension LengthHistogram {
    /// For each bucket that is not empty, in order: how many buckets after the one before, and its count.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        var last = 0
        for (bucket, count) in counts.sorted(by: { $0.key < $1.key }) {
            bytes.append(leb128: UInt64(bucket - last))
            bytes.append(leb128: UInt64(count))
            last = bucket
        }
        return bytes
    }

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
