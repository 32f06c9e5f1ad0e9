// Keys from the bytes that a terminal sends.

/// One key.
enum Key: Equatable, Sendable {
    case character(Character)
    case up, down, pageUp, pageDown, home, end
    case enter, escape, backspace
}

/// Decodes bytes; what is incomplete waits for more.
///
/// **Source:** xterm's control sequences: "VT220-Style Function Keys" and "PC-Style Function Keys", in normal and in
/// application mode.
struct KeyDecoder {
    private var bytes: [UInt8] = []

    var isEmpty: Bool { bytes.isEmpty }

    mutating func add(_ more: some Sequence<UInt8>) { bytes += more }

    /// The next key; nil if there is none, or only the beginning of one.
    ///
    /// - Parameter isComplete: No more bytes come soon: an escape is the key of that name, not a sequence's beginning.
    mutating func next(isComplete: Bool) -> Key? {
        while let first = bytes.first {
            switch first {
            case 0x1b:
                switch sequence(isComplete: isComplete) {
                case .key(let key): return key
                case .unknown: continue
                case .incomplete: return nil
                }
            case 0x0a, 0x0d:
                bytes.removeFirst()
                return .enter
            case 0x08, 0x7f:
                bytes.removeFirst()
                return .backspace
            case 0x0e: return take(.down)  // ^N
            case 0x10: return take(.up)  // ^P
            case 0x06: return take(.pageDown)  // ^F
            case 0x02: return take(.pageUp)  // ^B
            case ..<0x20: bytes.removeFirst()
            default:
                guard let character = character(isComplete: isComplete) else { return nil }
                return .character(character)
            }
        }
        return nil
    }

    private mutating func take(_ key: Key) -> Key {
        bytes.removeFirst()
        return key
    }

    private enum Reading {
        case key(Key), unknown, incomplete
    }

    /// The longest sequence that is waited for; a longer one is no key.
    private static let longest = 16

    private mutating func sequence(isComplete: Bool) -> Reading {
        guard bytes.count > 1, bytes[1] == UInt8(ascii: "[") || bytes[1] == UInt8(ascii: "O")
        else {
            guard bytes.count > 1 || isComplete else { return .incomplete }
            bytes.removeFirst()
            return .key(.escape)
        }
        // Parameters, then one byte that ends the sequence.
        let body = bytes.dropFirst(2)
        guard let end = body.firstIndex(where: { (0x40...0x7e).contains($0) }) else {
            guard isComplete || body.count > Self.longest else { return .incomplete }
            bytes.removeAll()
            return .unknown
        }
        let parameters = String(decoding: body[..<end], as: UTF8.self)
        let final = bytes[end]
        bytes.removeFirst(end + 1)
        switch (final, parameters) {
        case (UInt8(ascii: "A"), _): return .key(.up)
        case (UInt8(ascii: "B"), _): return .key(.down)
        case (UInt8(ascii: "H"), _), (UInt8(ascii: "~"), "1"), (UInt8(ascii: "~"), "7"):
            return .key(.home)
        case (UInt8(ascii: "F"), _), (UInt8(ascii: "~"), "4"), (UInt8(ascii: "~"), "8"):
            return .key(.end)
        case (UInt8(ascii: "~"), "5"): return .key(.pageUp)
        case (UInt8(ascii: "~"), "6"): return .key(.pageDown)
        case (UInt8(ascii: "M"), ""): return .key(.enter)  // of the keypad
        default: return .unknown
        }
    }

    /// A character's bytes, taken as a whole; an invalid byte is passed over.
    private mutating func character(isComplete: Bool) -> Character? {
        let first = bytes[0]
        let count = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
        guard bytes.count >= count || isComplete else { return nil }
        let text = String(decoding: bytes.prefix(count), as: UTF8.self)
        bytes.removeFirst(min(count, bytes.count))
        return text.first
    }
}
