// JSON written without an encoder, for rows of which an export has millions.

internal import StallModel

/// Bytes of JSON that is being written.
struct JSONText {
    private(set) var bytes: [UInt8] = []

    init() { bytes.reserveCapacity(1 << 14) }

    mutating func syntax(_ syntax: StaticString) {
        syntax.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    /// Appends JSON that was written before.
    mutating func raw(_ json: some Collection<UInt8>) { bytes.append(contentsOf: json) }

    /// The digits of a hexadecimal number.
    mutating func hexadecimal(_ number: UInt64) {
        var shift = (max(64 - number.leadingZeroBitCount, 1) - 1) / 4 * 4
        while shift >= 0 {
            bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)).lowHexadecimalDigit)
            shift -= 4
        }
    }

    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    mutating func beginObject() { bytes.append(UInt8(ascii: "{")) }
    mutating func endObject() { bytes.append(UInt8(ascii: "}")) }

    /// The next member of an object.
    mutating func member(_ key: StaticString, _ value: some JSONWritable) throws {
        if bytes.last != UInt8(ascii: "{") { bytes.append(UInt8(ascii: ",")) }
        bytes.append(UInt8(ascii: "\""))
        syntax(key)
        syntax("\":")
        try value.write(to: &self)
    }

    fileprivate mutating func write(_ text: String) throws {
        var text = text
        let isPlain = text.withUTF8 { characters in
            for byte in characters
            where byte < 0x20 || byte > 0x7e || byte == 0x22 || byte == 0x5c {
                return false
            }
            bytes.append(0x22)
            bytes.append(contentsOf: characters)
            bytes.append(0x22)
            return true
        }
        // Texts that need escapes, or are not ASCII.
        if !isPlain { bytes.append(contentsOf: try JSONLines.text(text).utf8) }
    }

    fileprivate mutating func digits(_ digits: String.UTF8View.SubSequence) {
        bytes.append(contentsOf: digits)
    }
}

/// A value of a row.
protocol JSONWritable {
    func write(to text: inout JSONText) throws
}

/// A value that was written before.
struct WrittenJSON: JSONWritable {
    var bytes: [UInt8]
    func write(to text: inout JSONText) { text.raw(bytes) }
}

extension String: JSONWritable {
    func write(to text: inout JSONText) throws { try text.write(self) }
}

extension Bool: JSONWritable {
    func write(to text: inout JSONText) { text.syntax(self ? "true" : "false") }
}

extension Double: JSONWritable {
    func write(to text: inout JSONText) throws {
        guard isFinite else { return try text.write(isNaN ? "nan" : "\(self)") }
        let digits = description
        text.digits(digits.utf8.dropLast(digits.hasSuffix(".0") ? 2 : 0))
    }
}

extension JSONWritable where Self: BinaryInteger {
    func write(to text: inout JSONText) { text.digits(description.utf8[...]) }
}

extension Int: JSONWritable {}
extension Int32: JSONWritable {}
extension Int64: JSONWritable {}
extension UInt64: JSONWritable {}

extension Optional: JSONWritable where Wrapped: JSONWritable {
    func write(to text: inout JSONText) throws {
        if let self { try self.write(to: &text) } else { text.syntax("null") }
    }
}

extension Array: JSONWritable where Element: JSONWritable {
    func write(to text: inout JSONText) throws {
        text.syntax("[")
        for (index, element) in enumerated() {
            if index > 0 { text.syntax(",") }
            try element.write(to: &text)
        }
        text.syntax("]")
    }
}
