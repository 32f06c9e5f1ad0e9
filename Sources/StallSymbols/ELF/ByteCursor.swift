// Reads the encodings of DWARF sequentially. A read beyond the end returns zero and leaves the cursor at the end, so
// that loops over invalid data terminate.

struct ByteCursor {
    let bytes: [UInt8]
    private(set) var position: Int
    let end: Int
    /// A read went beyond the end: earlier results are valid, later ones are not.
    private(set) var isExhausted = false

    init(_ bytes: [UInt8], at position: Int = 0, end: Int? = nil) {
        self.bytes = bytes
        self.end = min(max(end ?? bytes.count, 0), bytes.count)
        self.position = min(max(position, 0), self.end)
        isExhausted = position != self.position
    }

    var isAtEnd: Bool { position >= end }

    mutating func skip(_ count: Int) {
        guard count >= 0, count <= end - position else { return exhaust() }
        position += count
    }

    mutating func uint8() -> UInt8 {
        guard position < end else {
            exhaust()
            return 0
        }
        defer { position += 1 }
        return bytes[position]
    }

    /// A little-endian number of 1 to 8 bytes.
    mutating func unsigned(_ size: Int) -> UInt64 {
        guard size <= end - position else {
            exhaust()
            return 0
        }
        var value: UInt64 = 0
        for index in 0..<size { value |= UInt64(bytes[position + index]) << UInt64(8 * index) }
        position += size
        return value
    }

    mutating func uint16() -> UInt16 { UInt16(truncatingIfNeeded: unsigned(2)) }
    mutating func uint32() -> UInt32 { UInt32(truncatingIfNeeded: unsigned(4)) }
    mutating func uint64() -> UInt64 { unsigned(8) }

    mutating func uleb() -> UInt64 {
        var (value, shift): (UInt64, UInt64) = (0, 0)
        while position < end {
            let byte = bytes[position]
            position += 1
            if shift < 64 { value |= UInt64(byte & 0x7f) << shift }
            shift += 7
            if byte < 0x80 { return value }
        }
        exhaust()
        return 0
    }

    mutating func sleb() -> Int64 {
        var (value, shift): (Int64, Int64) = (0, 0)
        while position < end {
            let byte = bytes[position]
            position += 1
            if shift < 64 { value |= Int64(byte & 0x7f) << shift }
            shift += 7
            guard byte < 0x80 else { continue }
            if shift < 64, byte & 0x40 != 0 { value |= -1 << shift }
            return value
        }
        exhaust()
        return 0
    }

    /// A zero-ended string.
    mutating func string() -> String {
        let start = position
        while position < end, bytes[position] != 0 { position += 1 }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        skip(1)
        return text
    }

    private mutating func exhaust() {
        position = end
        isExhausted = true
    }
}
