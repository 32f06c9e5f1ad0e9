// Escapes in strings of JSON: \n, \u00e9, and pairs such as \ud83d\ude00 for characters outside of the basic plane.

enum JSONEscapes {
    /// How long the escape is that these bytes begin with: a pair is one. Nil for one that stands for no character.
    static func length(_ bytes: ArraySlice<UInt8>) -> Int? {
        read(bytes)?.length
    }

    /// The text of a string whose escapes were all looked at.
    static func unescaped(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var (text, rest) = ([UInt8](), bytes)
        text.reserveCapacity(bytes.count)
        while let byte = rest.first {
            if byte == UInt8(ascii: "\\"), let (scalar, length) = read(rest) {
                text += Array(String(Character(scalar)).utf8)
                rest = rest.dropFirst(length)
            } else {
                text.append(byte)
                rest = rest.dropFirst()
            }
        }
        return text
    }

    private static func read(
        _ bytes: ArraySlice<UInt8>
    ) -> (scalar: Unicode.Scalar, length: Int)? {
        guard let sign = bytes.dropFirst().first else { return nil }
        switch sign {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"):
            return (Unicode.Scalar(sign), 2)
        case UInt8(ascii: "b"): return ("\u{8}", 2)
        case UInt8(ascii: "f"): return ("\u{c}", 2)
        case UInt8(ascii: "n"): return ("\n", 2)
        case UInt8(ascii: "r"): return ("\r", 2)
        case UInt8(ascii: "t"): return ("\t", 2)
        case UInt8(ascii: "u"): break
        default: return nil
        }
        guard let first = unit(bytes) else { return nil }
        if let scalar = Unicode.Scalar(first) { return (scalar, 6) }
        guard first < 0xdc00, let second = unit(bytes.dropFirst(6)), 0xdc00...0xdfff ~= second
        else { return nil }
        let number = 0x10000 + (UInt32(first) - 0xd800) << 10 + UInt32(second) - 0xdc00
        return Unicode.Scalar(number).map { ($0, 12) }
    }

    /// The number of `\uXXXX`.
    private static func unit(_ bytes: ArraySlice<UInt8>) -> UInt16? {
        guard bytes.count >= 6, bytes[bytes.startIndex] == UInt8(ascii: "\\"),
            bytes[bytes.startIndex + 1] == UInt8(ascii: "u")
        else { return nil }
        var number: UInt16 = 0
        for byte in bytes.dropFirst(2).prefix(4) {
            let digit: UInt8
            switch byte {
            case 0x30...0x39: digit = byte - 0x30
            case 0x41...0x46: digit = byte - 0x41 + 10
            case 0x61...0x66: digit = byte - 0x61 + 10
            default: return nil
            }
            number = number << 4 | UInt16(digit)
        }
        return number
    }
}
