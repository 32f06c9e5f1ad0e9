// The wire format of protocol buffers, as far as a profile needs it.
//
// Source: protobuf.dev, "Encoding": a field is its number and wire type, then a varint, or a length and bytes.

struct ProtobufMessage {
    private(set) var bytes: [UInt8] = []

    init() {}

    /// A message of one repeated field.
    init(packed field: Int, _ numbers: [Int64]) { add(packed: field, numbers) }

    /// A number; zero is the default and is left out.
    mutating func add(_ field: Int, _ number: Int64) {
        guard number != 0 else { return }
        append(UInt64(field) << 3)
        append(UInt64(bitPattern: number))
    }

    mutating func add(_ field: Int, _ isTrue: Bool) { add(field, isTrue ? 1 : 0) }

    mutating func add(_ field: Int, _ message: ProtobufMessage) { add(field, message.bytes) }

    mutating func add(_ field: Int, _ bytes: [UInt8]) {
        append(UInt64(field) << 3 | 2)
        append(UInt64(bytes.count))
        self.bytes += bytes
    }

    /// Numbers of a repeated field, packed.
    mutating func add(packed field: Int, _ numbers: [Int64]) {
        append(UInt64(field) << 3 | 2)
        append(numbers.reduce(0) { $0 + UInt64(Self.byteCount(UInt64(bitPattern: $1))) })
        for number in numbers { append(UInt64(bitPattern: number)) }
    }

    /// Fields that were written before.
    mutating func add(written fields: ArraySlice<UInt8>) { bytes += fields }

    /// How long a varint is: seven bits are in a byte.
    private static func byteCount(_ number: UInt64) -> Int {
        max(1, (64 - number.leadingZeroBitCount + 6) / 7)
    }

    private mutating func append(_ number: UInt64) {
        var rest = number
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }
}
