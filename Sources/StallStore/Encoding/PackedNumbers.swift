// The elements of the file format's packed lists: LEB128 numbers (seven bits per byte, lowest first; the eighth bit is
// set when more follow) and texts.

extension [UInt8] {
    package mutating func append(leb128 number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(rest))
    }

    /// The length in bytes, then the bytes.
    package mutating func append(text: String) {
        append(leb128: UInt64(text.utf8.count))
        self += text.utf8
    }
}

extension Slice<UnsafeRawBufferPointer> {
    /// Takes a number off the front; nil when the bytes end inside it or it has more than 63 bits.
    @inline(__always)
    package mutating func popLEB128() -> UInt64? {
        // Most numbers are of one byte.
        guard let byte = first, byte < 0x80 else { return popLongLEB128() }
        self = dropFirst()
        return UInt64(byte)
    }

    private mutating func popLongLEB128() -> UInt64? {
        var (number, shift): (UInt64, UInt64) = (0, 0)
        var index = startIndex
        while shift < 63, index < endIndex {
            let byte = base[index]
            index += 1
            number |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 {
                self = self[index...]
                return number
            }
            shift += 7
        }
        return nil
    }

    /// Takes a number off the front as the positive one that it is.
    package mutating func popDuration() -> Int64? { popLEB128().map { Int64($0) } }

    /// Takes a length of time off the front; nil for one that no report can have.
    mutating func popLimited() -> Int64? {
        popDuration().flatMap { $0 <= ValueLimits.duration_ns ? $0 : nil }
    }

    /// Takes a text off the front; nil when the bytes end inside it.
    package mutating func popText() -> String? {
        popBytes().map { String(decoding: $0, as: UTF8.self) }
    }

    /// Takes a length and that many bytes off the front; nil when the bytes end inside them.
    package mutating func popBytes() -> Self? {
        guard let length = popLEB128(), length <= UInt64(count) else { return nil }
        defer { self = dropFirst(Int(length)) }
        return prefix(Int(length))
    }

    /// Takes a number off the front as the raw value of an enum; nil when it is none.
    package mutating func popValue<Value: RawRepresentable<UInt8>>() -> Value? {
        popLEB128().flatMap { UInt8(exactly: $0) }.flatMap { Value(rawValue: $0) }
    }
}
