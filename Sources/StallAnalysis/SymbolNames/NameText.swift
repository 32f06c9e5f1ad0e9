// Text handling for symbol names: slices of bytes, and brackets in them. `->` is not a bracket, nor is `<` in an
// operator's name, and ` in ` within parentheses is not a context.

internal import Glibc

/// A part of a symbol's name, as UTF-8.
typealias NameText = ArraySlice<UInt8>

extension NameText {
    init(_ text: String) { self = Array(text.utf8)[...] }

    var string: String { String(decoding: self, as: UTF8.self) }

    func starts(with prefix: StaticString) -> Bool {
        withUnsafeBufferPointer { prefix.matches($0, at: 0) }
    }

    func ends(with suffix: StaticString) -> Bool {
        count >= suffix.utf8CodeUnitCount
            && suffix.withUTF8Buffer { $0.elementsEqual(self[endIndex - $0.count..<endIndex]) }
    }

    /// Removes the prefix; false if the text does not start with it.
    mutating func strip(_ prefix: StaticString) -> Bool {
        guard starts(with: prefix) else { return false }
        removeFirst(prefix.utf8CodeUnitCount)
        return true
    }

    /// Whether the text occurs anywhere, including in brackets.
    func contains(_ text: StaticString) -> Bool {
        let first = text.utf8Start[0]
        return withUnsafeBufferPointer { bytes in
            for index in bytes.indices where bytes[index] == first && text.matches(bytes, at: index)
            {
                return true
            }
            return false
        }
    }

    /// The first occurrence of the text outside of brackets.
    func firstIndex(of text: StaticString, from start: Int? = nil) -> Int? {
        let first = (start ?? startIndex) - startIndex
        return withUnsafeBufferPointer { bytes in
            // Most names have none of what is searched for, and to count brackets takes longer.
            guard let base = bytes.baseAddress, first < bytes.count,
                memchr(base + first, Int32(text.utf8Start[0]), bytes.count - first) != nil
            else { return nil }
            var scan = BracketScan()
            var index = 0
            while index < bytes.count {
                if scan.depth == 0, index >= first, text.matches(bytes, at: index) {
                    return startIndex + index
                }
                scan.step(over: bytes[index], after: index > 0 ? bytes[index - 1] : nil)
                index += 1
            }
            return nil
        }
    }

    /// The parts between occurrences of the text outside of brackets.
    func split(at separator: StaticString) -> [NameText] {
        var parts: [NameText] = []
        var rest = self
        while let index = rest.firstIndex(of: separator) {
            parts.append(rest[rest.startIndex..<index])
            rest = rest[(index + separator.utf8CodeUnitCount)...]
        }
        return parts + [rest]
    }

    /// The index after the bracket that closes the one at the start; nil if it is not closed.
    var endOfBracket: Int? {
        var scan = BracketScan()
        for index in startIndex..<endIndex {
            scan.step(
                over: self[index], after: index > startIndex ? self[index - 1] : UInt8(ascii: " "))
            if scan.depth == 0 { return index + 1 }
        }
        return nil
    }
}

extension StaticString {
    /// Whether the bytes from `index` start with this text.
    fileprivate func matches(_ bytes: UnsafeBufferPointer<UInt8>, at index: Int) -> Bool {
        let count = utf8CodeUnitCount
        guard bytes.count - index >= count, bytes[index] == utf8Start[0] else { return false }
        var matched = 1
        while matched < count, bytes[index + matched] == utf8Start[matched] { matched += 1 }
        return matched == count
    }
}

extension UInt8 {
    /// Part of an identifier: letters, digits, `_`, `$`, and all non-ASCII characters.
    var isIdentifier: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...:
            true
        default: false
        }
    }

    var isLetter: Bool {
        isUppercase || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self)
    }
    var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
    var isUppercase: Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) }
}

/// Counts open brackets, byte by byte.
struct BracketScan {
    private(set) var depth = 0
    private var angles = 0
    private var closedAngle = false
    private var isQuoted = false

    mutating func step(over byte: UInt8, after previous: UInt8?) {
        let followsAngle = closedAngle
        closedAngle = false
        if byte == UInt8(ascii: "`") {
            // A raw identifier may contain anything.
            isQuoted.toggle()
            depth = max(0, depth + (isQuoted ? 1 : -1))
        }
        guard !isQuoted else { return }
        switch byte {
        case UInt8(ascii: "("), UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
        case UInt8(ascii: ")"), UInt8(ascii: "]"), UInt8(ascii: "}"): depth = max(0, depth - 1)
        case UInt8(ascii: "<") where followsAngle || previous.map(Self.precedesGenerics) ?? false:
            angles += 1
            depth += 1
        case UInt8(ascii: ">") where angles > 0 && previous != UInt8(ascii: "-"):
            angles -= 1
            depth = max(0, depth - 1)
            closedAngle = true
        default: break
        }
    }

    /// A name, a private name's `)`, or the word before: anything else is a `<` in an operator's name.
    private static func precedesGenerics(_ byte: UInt8) -> Bool {
        byte.isIdentifier || byte == UInt8(ascii: " ") || byte == UInt8(ascii: ")")
    }
}
