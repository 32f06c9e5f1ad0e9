// Finds the values of a JSON text in one pass, and refuses text that is not JSON.

/// Reads JSON by the grammar of RFC 8259, without extensions.
struct JSONScanner {
    private let bytes: [UInt8]
    private let depthLimit: Int
    private var place = 0
    private var values: [JSONDocument.Value] = []

    /// The values of a text, in its order.
    ///
    /// - Parameter depthLimit: Reading a value within a value takes stack.
    static func values(of bytes: [UInt8], depthLimit: Int) throws -> [JSONDocument.Value] {
        var scanner = JSONScanner(bytes: bytes, depthLimit: depthLimit)
        guard bytes.count < Int(Int32.max) else { throw scanner.fault("too long") }
        scanner.values.reserveCapacity(bytes.count / 16 + 1)
        try scanner.value(depth: 0)
        scanner.skipSpace()
        guard scanner.place == bytes.count else { throw scanner.fault("text behind the value") }
        return scanner.values
    }

    private init(bytes: [UInt8], depthLimit: Int) {
        self.bytes = bytes
        self.depthLimit = depthLimit
    }

    private func fault(_ reason: String) -> DecodingError {
        .dataCorrupted(
            DecodingError.Context(
                codingPath: [], debugDescription: "\(reason) at byte \(place + 1)"))
    }

    private var byte: UInt8? { place < bytes.count ? bytes[place] : nil }

    private mutating func skipSpace() {
        while let byte, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 { place += 1 }
    }

    /// Passes over this byte, or throws.
    private mutating func expect(_ expected: UInt8) throws {
        guard byte == expected else { throw fault("no '\(Character(Unicode.Scalar(expected)))'") }
        place += 1
    }

    private mutating func value(depth: Int) throws {
        guard depth < depthLimit else { throw fault("nested too deep") }
        skipSpace()
        switch byte {
        case UInt8(ascii: "\""): try string()
        case UInt8(ascii: "{"): try object(depth: depth)
        case UInt8(ascii: "["): try array(depth: depth)
        case UInt8(ascii: "t"): try word("true", .true)
        case UInt8(ascii: "f"): try word("false", .false)
        case UInt8(ascii: "n"): try word("null", .null)
        default: try number()
        }
    }

    /// - Returns: Its index in the list.
    @discardableResult
    private mutating func add(_ kind: JSONDocument.Kind, _ start: Int) -> Int {
        values.append(
            JSONDocument.Value(
                kind: kind, start: Int32(start), end: Int32(place), next: Int32(values.count + 1)))
        return values.count - 1
    }

    private mutating func close(_ index: Int) {
        values[index].end = Int32(place)
        values[index].next = Int32(values.count)
    }

    private mutating func object(depth: Int) throws {
        let index = add(.object, place)
        place += 1
        skipSpace()
        if byte == UInt8(ascii: "}") {
            place += 1
            return close(index)
        }
        while true {
            skipSpace()
            try string()
            skipSpace()
            try expect(UInt8(ascii: ":"))
            try value(depth: depth + 1)
            skipSpace()
            guard byte == UInt8(ascii: ",") else { break }
            place += 1
        }
        try expect(UInt8(ascii: "}"))
        close(index)
    }

    private mutating func array(depth: Int) throws {
        let index = add(.array, place)
        place += 1
        skipSpace()
        if byte == UInt8(ascii: "]") {
            place += 1
            return close(index)
        }
        while true {
            try value(depth: depth + 1)
            skipSpace()
            guard byte == UInt8(ascii: ",") else { break }
            place += 1
        }
        try expect(UInt8(ascii: "]"))
        close(index)
    }

    private mutating func string() throws {
        try expect(UInt8(ascii: "\""))
        let start = place
        var kind = JSONDocument.Kind.string
        while let byte, byte != UInt8(ascii: "\"") {
            guard byte >= 0x20 else { throw fault("a control character in a string") }
            if byte == UInt8(ascii: "\\") {
                kind = .escapedString
                guard let length = JSONEscapes.length(bytes[place...]) else {
                    throw fault("a wrong escape")
                }
                place += length
            } else {
                place += 1
            }
        }
        guard byte != nil else { throw fault("a string without an end") }
        add(kind, start)
        place += 1
    }

    private mutating func word(_ word: String, _ kind: JSONDocument.Kind) throws {
        let start = place
        for byte in word.utf8 { try expect(byte) }
        add(kind, start)
    }

    private mutating func number() throws {
        let start = place
        if byte == UInt8(ascii: "-") { place += 1 }
        if byte == UInt8(ascii: "0") { place += 1 } else { try digits() }
        if byte == UInt8(ascii: ".") {
            place += 1
            try digits()
        }
        if byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E") {
            place += 1
            if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") { place += 1 }
            try digits()
        }
        add(.number, start)
    }

    private mutating func digits() throws {
        let start = place
        while let byte, byte &- 0x30 < 10 { place += 1 }
        guard place > start else { throw fault("no value") }
    }
}
