// JSON written without an encoder, for rows of which an export has millions.

/// Bytes of JSON that is being written.
struct JSONText {
    private(set) var bytes: [UInt8] = []
    /// A text as JSON, for texts that need escapes or are not ASCII.
    private let quoted: (String) throws -> String

    init(quoted: @escaping (String) throws -> String) {
        self.quoted = quoted
        bytes.reserveCapacity(1 << 14)
    }

    /// Syntax, and keys with it: `,"pid":`.
    mutating func syntax(_ syntax: StaticString) {
        syntax.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    mutating func write(_ text: String) throws {
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
        if !isPlain { bytes.append(contentsOf: try quoted(text).utf8) }
    }

    mutating func write(_ text: String?) throws {
        if let text { try write(text) } else { syntax("null") }
    }

    mutating func write(_ number: Double) throws {
        guard number.isFinite else { return try write(number.isNaN ? "nan" : "\(number)") }
        let digits = number.description
        bytes.append(
            contentsOf: digits.hasSuffix(".0") ? digits.dropLast(2).utf8 : digits[...].utf8)
    }

    mutating func write(_ number: Double?) throws {
        if let number { try write(number) } else { syntax("null") }
    }

    mutating func write(_ number: some BinaryInteger) {
        bytes.append(contentsOf: number.description.utf8)
    }

    mutating func write(_ number: (some BinaryInteger)?) {
        if let number { write(number) } else { syntax("null") }
    }

    mutating func write(_ isTrue: Bool) {
        syntax(isTrue ? "true" : "false")
    }

    /// An array whose elements `body` writes.
    mutating func write<Element>(
        _ elements: [Element], _ body: (Element, inout JSONText) throws -> Void
    ) rethrows {
        bytes.append(0x5b)
        for (index, element) in elements.enumerated() {
            if index > 0 { bytes.append(0x2c) }
            try body(element, &self)
        }
        bytes.append(0x5d)
    }
}
