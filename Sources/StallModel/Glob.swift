// Globs for the names in rules. Small on purpose: users read rules to find out why a frame was dropped.

/// A pattern for a whole name: `*` stands for any characters, `?` for one, `\` takes the next one as it is, and `\u{A}`
/// stands for the character with that number.
package struct Glob: Hashable, Sendable {
    fileprivate enum Piece: Hashable, Sendable {
        case byte(UInt8)
        case one
        case any
    }

    /// As it was written.
    package let pattern: String
    private let pieces: [Piece]
    /// The name that alone fits, when the pattern has no wildcards.
    package let literal: String?

    package init(_ pattern: String) {
        self.pattern = pattern
        var pieces: [Piece] = []
        var isEscaped = false
        var rest = pattern.utf8[...]
        while let byte = rest.popFirst() {
            switch byte {
            case _ where isEscaped:
                if byte == UInt8(ascii: "u"), let scalar = Self.takeNumber(from: &rest) {
                    pieces += String(scalar).utf8.map(Piece.byte)
                } else {
                    pieces.append(.byte(byte))
                }
                isEscaped = false
            case UInt8(ascii: "\\"): isEscaped = true
            case UInt8(ascii: "*"): if pieces.last != .any { pieces.append(.any) }
            case UInt8(ascii: "?"): pieces.append(.one)
            default: pieces.append(.byte(byte))
            }
        }
        if isEscaped { pieces.append(.byte(UInt8(ascii: "\\"))) }
        self.pieces = pieces
        let bytes = pieces.compactMap { piece -> UInt8? in
            if case .byte(let byte) = piece { byte } else { nil }
        }
        literal = bytes.count == pieces.count ? String(decoding: bytes, as: UTF8.self) : nil
    }

    /// Takes `{A}`, the number of a character; nil, and nothing is taken, for anything else.
    private static func takeNumber(
        from rest: inout Substring.UTF8View
    ) -> Unicode.Scalar? {
        guard rest.first == UInt8(ascii: "{"), let end = rest.firstIndex(of: UInt8(ascii: "}"))
        else { return nil }
        let digits = rest[..<end].dropFirst()
        guard (1...6).contains(digits.count),
            let number = UInt32(String(decoding: digits, as: UTF8.self), radix: 16),
            let scalar = Unicode.Scalar(number)
        else { return nil }
        rest = rest[rest.index(after: end)...]
        return scalar
    }

    /// Whether an image matches: its whole path if the pattern has a slash, else its file name.
    package func matchesImage(path: String?, name: String?) -> Bool {
        (pattern.contains("/") ? path : name).map(matches) ?? false
    }

    /// Whether the whole name matches.
    ///
    /// **Cost:** the length of the name times that of the pattern at worst; usually the first character decides.
    package func matches(_ name: String) -> Bool {
        var name = name
        return name.withUTF8 { matches($0) }
    }

    /// Backtracks to the last `*` only: it can match whatever an earlier one could.
    private func matches(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        var (index, piece) = (0, 0)
        var retry: (index: Int, piece: Int)?
        while true {
            if piece < pieces.count, case .any = pieces[piece] {
                retry = (index, piece + 1)
                piece += 1
            } else if index == name.count {
                return pieces[piece...].allSatisfy { $0 == .any }
            } else if piece < pieces.count, pieces[piece].fits(name[index]) {
                index = pieces[piece] == .one ? name.endOfCharacter(at: index) : index + 1
                piece += 1
            } else if let last = retry, last.index < name.count {
                (index, piece) = (last.index + 1, last.piece)
                retry?.index += 1
            } else {
                return false
            }
        }
    }
}

extension Glob.Piece {
    fileprivate func fits(_ byte: UInt8) -> Bool { self == .one || self == .byte(byte) }
}

extension UnsafeBufferPointer<UInt8> {
    /// The end of the UTF-8 sequence that starts here.
    fileprivate func endOfCharacter(at index: Int) -> Int {
        var end = index + 1
        while end < count, self[end] & 0xc0 == 0x80 { end += 1 }
        return end
    }
}
