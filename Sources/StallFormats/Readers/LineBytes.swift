// Parts of a line as bytes. A profile has millions of lines, and a string of each would take most of the time.

extension ArraySlice<UInt8> {
    /// Bytes that are not UTF-8 are replaced.
    var text: String { String(decoding: self, as: UTF8.self) }

    func begins(with text: StaticString) -> Bool {
        text.withUTF8Buffer { starts(with: $0) }
    }

    func ends(with text: StaticString) -> Bool {
        text.withUTF8Buffer { count >= $0.count && suffix($0.count).elementsEqual($0) }
    }

    /// Without spaces and tabs at both ends.
    var trimmed: Self {
        var part = self
        while let byte = part.first, byte.isBlank { part.removeFirst() }
        while let byte = part.last, byte.isBlank { part.removeLast() }
        return part
    }

    /// The first range of a text.
    func range(of text: StaticString) -> Range<Int>? {
        text.withUTF8Buffer { wanted in
            guard let first = wanted.first, count >= wanted.count else { return nil }
            for start in startIndex...endIndex - wanted.count
            where self[start] == first && self[start...].starts(with: wanted) {
                return start..<start + wanted.count
            }
            return nil
        }
    }

    /// The last range of a text.
    func lastRange(of text: StaticString) -> Range<Int>? {
        text.withUTF8Buffer { wanted in
            guard let first = wanted.first, count >= wanted.count else { return nil }
            for start in (startIndex...endIndex - wanted.count).reversed()
            where self[start] == first && self[start...].starts(with: wanted) {
                return start..<start + wanted.count
            }
            return nil
        }
    }

    /// Takes the next word and the spaces before it; empty at the end.
    mutating func takeWord() -> Self {
        let start = firstIndex { !$0.isBlank } ?? endIndex
        let end = self[start...].firstIndex { $0.isBlank } ?? endIndex
        let word = self[start..<end]
        self = self[end...]
        return word
    }

    /// Its first words.
    func words(atMost limit: Int) -> [Self] {
        var words: [Self] = []
        var rest = self
        while words.count < limit {
            let word = rest.takeWord()
            if word.isEmpty { break }
            words.append(word)
        }
        return words
    }

    /// The number that all of it is, in digits.
    func decimal<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
        guard !isEmpty else { return nil }
        var number: Number = 0
        for byte in self {
            guard byte.isDigit, let digit = Number(exactly: byte &- 0x30) else { return nil }
            let (tens, isTooLarge) = number.multipliedReportingOverflow(by: 10)
            let (sum, isTooLong) = tens.addingReportingOverflow(digit)
            guard !isTooLarge, !isTooLong else { return nil }
            number = sum
        }
        return number
    }

    /// The address that all of it is, in hexadecimal digits.
    func hexadecimal() -> UInt64? {
        let digits = drop { $0 == 0x30 }
        guard !isEmpty, digits.count <= 16 else { return nil }
        var number: UInt64 = 0
        for byte in digits {
            guard let digit = byte.hexadecimalDigit else { return nil }
            number = number << 4 | UInt64(digit)
        }
        return number
    }

    /// An address behind `0x`.
    func address() -> UInt64? { begins(with: "0x") ? dropFirst(2).hexadecimal() : nil }

    /// `file:line` or `file:line:column`; nil without a line. A compiler's own code has no location.
    func place() -> (file: String, line: Int?)? {
        guard let colon = lastIndex(of: UInt8(ascii: ":")),
            let last = self[(colon + 1)...].decimal(Int32.self)
        else { return nil }
        var (file, line) = (self[..<colon], last)
        if let colon = file.lastIndex(of: UInt8(ascii: ":")),
            let number = file[(colon + 1)...].decimal(Int32.self)
        {
            (file, line) = (file[..<colon], number)
        }
        guard !file.isEmpty, file.contains(where: { $0 != UInt8(ascii: "?") }) else { return nil }
        return (file.text, line > 0 ? Int(line) : nil)
    }
}

extension ArraySlice<UInt8> {
    /// Without the version of a library's symbol: `@GLIBC_2.2.5`, `@@GLIBC_2.17`.
    var withoutVersion: Self {
        guard let mark = firstIndex(of: UInt8(ascii: "@")), mark > startIndex,
            self[mark...].dropFirst().drop(while: { $0 == UInt8(ascii: "@") })
                .allSatisfy({ $0.isDigit || 0x41...0x5a ~= $0 || $0 == 0x5f || $0 == 0x2e })
        else { return self }
        return self[..<mark]
    }
}

extension [UInt8] {
    /// Without the colors that terminals get, as `script` records them.
    var withoutColors: [UInt8] {
        guard contains(0x1b) else { return self }
        var plain: [UInt8] = []
        var isEscape = false
        for byte in self {
            if byte == 0x1b {
                isEscape = true
            } else if isEscape {
                if 0x40...0x7e ~= byte, byte != UInt8(ascii: "[") { isEscape = false }
            } else if byte != 0x0d {
                plain.append(byte)
            }
        }
        return plain
    }
}

extension UInt8 {
    var isBlank: Bool { self == 0x20 || self == 0x09 }
    var isDigit: Bool { 0x30...0x39 ~= self }

    var hexadecimalDigit: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x41...0x46: self - 0x37
        case 0x61...0x66: self - 0x57
        default: nil
        }
    }
}
