// The fields of a message of protocol buffers. Any bytes may be given: a field that is cut off or wrong ends
// the message.
//
// **Source:** protobuf.dev, "Encoding".

/// Reads the fields of a message, one after another.
struct ProtobufFields {
    enum Value: Equatable {
        case number(UInt64)
        case bytes(Range<Int>)
        /// Of a fixed size, which no field of a profile is.
        case other
    }

    private let bytes: [UInt8]
    private(set) var place: Int
    private let end: Int
    /// The message ended within a field, or has what is no field.
    private(set) var isBroken = false

    /// - Parameter range: Of the message in the bytes.
    init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        (place, end) = (range.lowerBound, range.upperBound)
    }

    init(_ bytes: [UInt8]) { self.init(bytes, bytes.indices) }

    /// The next field; nil at the end.
    mutating func next() -> (field: Int, value: Value)? {
        guard place < end, !isBroken else { return nil }
        guard let tag = number(), let field = Int(exactly: tag >> 3), field > 0 else {
            isBroken = true
            return nil
        }
        switch tag & 7 {
        case 0: if let number = number() { return (field, .number(number)) }
        case 1: if skip(8) { return (field, .other) }
        case 2:
            if let size = number().flatMap({ Int(exactly: $0) }), size <= end - place {
                place += size
                return (field, .bytes(place - size..<place))
            }
        case 5: if skip(4) { return (field, .other) }
        default: break
        }
        isBroken = true
        return nil
    }

    /// A varint, also of a packed field.
    mutating func number() -> UInt64? {
        var (number, shift): (UInt64, UInt64) = (0, 0)
        while place < end, shift < 64 {
            let byte = bytes[place]
            place += 1
            number |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return number }
            shift += 7
        }
        return nil
    }

    private mutating func skip(_ count: Int) -> Bool {
        guard count <= end - place else { return false }
        place += count
        return true
    }
}
