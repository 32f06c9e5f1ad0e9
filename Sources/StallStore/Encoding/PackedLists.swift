// Encodes a stack's locations and a report's samples as one blob each. Part of the file format.

package import StallModel

/// One location of a stack: the number of a `location` row, and whether the unwinder guessed it.
package struct StackEntry: Equatable {
    package var location: Int64
    package var isGuessed: Bool

    package init(
        location: Int64, isGuessed: Bool
    ) {
        self.location = location
        self.isGuessed = isGuessed
    }

    package init(key: Int64) {
        self.init(location: Int64(UInt64(bitPattern: key) >> 1), isGuessed: key & 1 == 1)
    }

    /// As one number, the lowest bit for the guess.
    package var key: Int64 { location << 1 | (isGuessed ? 1 : 0) }
}

extension [StackEntry] {
    /// The key of each entry.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count * 3)
        for entry in self {
            bytes.append(leb128: UInt64(bitPattern: entry.key))
        }
        return bytes
    }

    /// Nil when the bytes are no such list, or one that is longer than any agent's: each entry is read from the store.
    package init?(encoded bytes: UnsafeRawBufferPointer) {
        guard bytes.count <= ValueLimits.stackBytes else { return nil }
        self = []
        // Most take two bytes or more.
        reserveCapacity(Swift.min(bytes.count / 2 + 1, ValueLimits.entriesOfStack))
        var rest = bytes[...]
        while !rest.isEmpty {
            guard let number = rest.popLEB128(), count < ValueLimits.entriesOfStack else {
                return nil
            }
            append(StackEntry(key: Int64(bitPattern: number)))
        }
    }
}

/// One look at a stalled thread, with the number of a `stack` row instead of the stack.
package struct StoredSample: Equatable {
    package var offset_ns: Int64
    /// Nil when it is the one that `sampleWeights` derives.
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

/// The first number of a list of samples: how the list is written. Programs before schema version 17 wrote none, and
/// began with the flags of a sample, which never are these: no first sample has its thread from the one before.
private enum SampleList: UInt8 {
    /// Times are in microseconds: no agent measures them better.
    case microseconds = 8
    /// Some time has a part of a microsecond: another program's.
    case nanoseconds = 9

    var unit_ns: Int64 { self == .microseconds ? 1000 : 1 }

    /// Nil for a time that no report can have.
    func time_ns(_ time: Int64) -> Int64? {
        (0...ValueLimits.duration_ns / unit_ns).contains(time) ? time * unit_ns : nil
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
    /// With the stack of the last sample that had one.
    static let sameStack = SampleFlags(rawValue: 64)
    static let hasWeight = SampleFlags(rawValue: 128)
    static let end: UInt64 = 256
    /// Before schema version 17 this bit said that no weight follows, and the two above were not in use.
    static let hasNoWeight = sameStack
    static let endBefore: UInt64 = 128
}

/// Agents take each sample twice as far behind the last one as that was behind the one before. How far an offset is off
/// that takes a byte or two, the offset itself three.
private struct OffsetPrediction {
    private var last: Int64 = 0
    private var beforeLast: Int64 = 0

    /// The number to write for the next offset.
    mutating func encode(_ offset: Int64) -> UInt64 {
        let error = offset &- next
        note(offset)
        return UInt64(bitPattern: error << 1 ^ error >> 63)
    }

    /// The next offset, of which this was written. Any number is possible, as for any stored value.
    mutating func decode(_ number: UInt64) -> Int64 {
        let offset = next &+ (Int64(bitPattern: number >> 1) ^ -Int64(bitPattern: number & 1))
        note(offset)
        return offset
    }

    private var next: Int64 { 3 &* last &- 2 &* beforeLast }
    private mutating func note(_ offset: Int64) { (beforeLast, last) = (last, offset) }
}

extension [StoredSample] {
    /// How the list is written; then for each sample: flags, offset, weight (unless it follows from the rest) and cost;
    /// then, as the flags say, the thread, the stack's number, and the failure as its length and UTF-8 bytes.
    package var encoded: [UInt8] {
        guard !isEmpty else { return [] }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count * 16)
        let list: SampleList = allSatisfy(\.isInMicroseconds) ? .microseconds : .nanoseconds
        bytes.append(list.rawValue)
        func append(_ time_ns: Int64) {
            bytes.append(leb128: UInt64(Swift.max(0, time_ns) / list.unit_ns))
        }
        var prediction = OffsetPrediction()
        var lastThread: Int32?
        var lastStack: Int64?
        for sample in self {
            var flags = SampleFlags()
            if sample.isLate { flags.insert(.isLate) }
            if sample.weight_ns != nil { flags.insert(.hasWeight) }
            if sample.stack != nil { flags.insert(.hasStack) }
            if sample.failure != nil { flags.insert(.hasFailure) }
            if sample.thread == lastThread { flags.insert(.sameThread) }
            if sample.stack != nil, sample.stack == lastStack { flags.insert(.sameStack) }
            let method = sample.method.map { UInt64($0.rawValue) + 1 } ?? 0
            bytes.append(leb128: flags.rawValue | method << SampleFlags.methodShift)
            bytes.append(
                leb128: prediction.encode(Swift.max(0, sample.offset_ns) / list.unit_ns))
            if let weight = sample.weight_ns { append(weight) }
            append(sample.captureCost_ns)
            if !flags.contains(.sameThread) {
                bytes.append(leb128: UInt64(Swift.max(0, sample.thread)))
            }
            if let stack = sample.stack, !flags.contains(.sameStack) {
                bytes.append(leb128: UInt64(bitPattern: stack))
            }
            if let failure = sample.failure { bytes.append(text: failure) }
            lastThread = sample.thread
            lastStack = sample.stack ?? lastStack
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

extension StoredSample {
    fileprivate var isInMicroseconds: Bool {
        offset_ns % 1000 == 0 && captureCost_ns % 1000 == 0 && (weight_ns ?? 0) % 1000 == 0
    }
}

/// A sample that is not late and has a stack, without the rest of it.
package struct SampledStack {
    package var offset_ns: Int64
    /// Nil when it is the one that `sampleWeights` derives.
    package var weight_ns: Int64?
    package var stack: Int64
}

/// Decodes a report's samples one by one.
package struct PackedSamples {
    private var rest: Slice<UnsafeRawBufferPointer>
    /// Nil for a list that was written before schema version 17.
    private let list: SampleList?
    private var prediction = OffsetPrediction()
    private var lastThread: Int32?
    private var lastStack: Int64?
    private var count = 0
    /// The bytes are no list of samples.
    package private(set) var isDamaged = false

    package init(_ bytes: UnsafeRawBufferPointer) {
        list = bytes.first.flatMap(SampleList.init(rawValue:))
        rest = bytes.dropFirst(list == nil ? 0 : 1)
    }

    /// The fields of a sample. Without texts: most readers add up millions of stacks. Inlined, so that a reader does not
    /// compute fields that it leaves out.
    private struct Fields {
        var flags: SampleFlags
        var method: CaptureMethod?
        var thread: Int32
        var offset_ns: Int64
        var weight_ns: Int64?
        var captureCost_ns: Int64
        var stack: Int64?
        var failure: Slice<UnsafeRawBufferPointer>?
    }

    /// The next sample; nil at the end, or where the list is damaged.
    package mutating func next() -> StoredSample? {
        fields().map { fields in
            StoredSample(
                offset_ns: fields.offset_ns, weight_ns: fields.weight_ns,
                isLate: fields.flags.contains(.isLate), thread: fields.thread,
                method: fields.method, stack: fields.stack, captureCost_ns: fields.captureCost_ns,
                failure: fields.failure.map { String(decoding: $0, as: UTF8.self) })
        }
    }

    /// The next sample that is not late and has a stack; nil at the end, or where the list is damaged.
    package mutating func nextStack() -> SampledStack? {
        while let fields = fields() {
            guard let stack = fields.stack, !fields.flags.contains(.isLate) else { continue }
            return SampledStack(
                offset_ns: fields.offset_ns, weight_ns: fields.weight_ns, stack: stack)
        }
        return nil
    }

    @inline(__always)
    private mutating func fields() -> Fields? {
        guard !rest.isEmpty, !isDamaged else { return nil }
        let fields = count < ValueLimits.samplesOfReport ? decoded() : nil
        count += 1
        isDamaged = fields == nil
        return fields
    }

    @inline(__always)
    private mutating func decoded() -> Fields? {
        guard let first = rest.popLEB128(),
            first < (list == nil ? SampleFlags.endBefore : SampleFlags.end)
        else { return nil }
        let flags = SampleFlags(rawValue: first)
        let hasWeight =
            list == nil ? !flags.contains(.hasNoWeight) : flags.contains(.hasWeight)
        guard let offset = popOffset() else { return nil }
        var weight: Int64?
        if hasWeight {
            guard let written = popTime() else { return nil }
            weight = written
        }
        guard let cost = popTime() else { return nil }
        let thread =
            flags.contains(.sameThread)
            ? lastThread : rest.popLEB128().flatMap { Int32(exactly: $0) }
        guard let thread else { return nil }
        lastThread = thread
        var fields = Fields(
            flags: flags, thread: thread, offset_ns: offset, weight_ns: weight,
            captureCost_ns: cost)
        let method = first >> SampleFlags.methodShift & SampleFlags.methodMask
        if method != 0 {
            guard let known = CaptureMethod(rawValue: UInt8(method - 1)) else { return nil }
            fields.method = known
        }
        if flags.contains(.hasStack) {
            let isSame = list != nil && flags.contains(.sameStack)
            guard let stack = isSame ? lastStack : rest.popDuration() else { return nil }
            fields.stack = stack
            lastStack = stack
        }
        if flags.contains(.hasFailure) {
            guard let failure = rest.popBytes() else { return nil }
            fields.failure = failure
        }
        return fields
    }

    @inline(__always)
    private mutating func popOffset() -> Int64? {
        guard let list else { return rest.popLimited() }
        guard let number = rest.popLEB128() else { return nil }
        return list.time_ns(prediction.decode(number))
    }

    @inline(__always)
    private mutating func popTime() -> Int64? {
        guard let list else { return rest.popLimited() }
        return rest.popDuration().flatMap { list.time_ns($0) }
    }
}

extension [StoredSample] {
    /// The nanoseconds that each sample stands for, of a report that lasted so long.
    package func weights(in duration_ns: Int64) -> [Int64] {
        zip(self, impliedWeights(in: duration_ns)).map { $0.weight_ns ?? $1 }
    }

    /// Leaves out the weights that follow from the rest.
    mutating func omitImpliedWeights(in duration_ns: Int64) {
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

extension LengthHistogram {
    /// For each bucket that is not empty, in order: how many buckets after the one before, and its count.
    package var encoded: [UInt8] {
        var bytes: [UInt8] = []
        var last = 0
        for bucket in 0..<Self.bucketCount {
            guard let count = counts[bucket] else { continue }
            bytes.append(leb128: UInt64(bucket - last))
            bytes.append(leb128: UInt64(count))
            last = bucket
        }
        return bytes
    }
}
