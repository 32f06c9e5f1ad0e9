// How a stack's places are written into one blob, and how stored content is hashed.
// Both are part of the file format: stores of other versions and machines hold the same bytes.

internal import StallModel

/// One place of a stack: the number of a `location` row, and whether the unwinder guessed it.
struct StackEntry: Hashable {
    var location: Int64
    var isGuessed: Bool
}

extension [StackEntry] {
    /// LEB128 numbers: seven bits a byte, lowest first, the eighth bit says that more follow.
    var encoded: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count * 3)
        for entry in self {
            var rest = UInt64(bitPattern: entry.location) << 1 | (entry.isGuessed ? 1 : 0)
            while rest >= 0x80 {
                bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
                rest >>= 7
            }
            bytes.append(UInt8(rest))
        }
        return bytes
    }

    /// Nil when the bytes end inside a number or a number is too long to be one.
    init?(encoded bytes: some Sequence<UInt8>) {
        self = []
        var (number, shift): (UInt64, UInt64) = (0, 0)
        for byte in bytes {
            guard shift < 63 else { return nil }
            number |= UInt64(byte & 0x7f) << shift
            shift += 7
            if byte < 0x80 {
                append(StackEntry(location: Int64(number >> 1), isGuessed: number & 1 == 1))
                (number, shift) = (0, 0)
            }
        }
        guard shift == 0 else { return nil }
    }
}

extension ContentHash {
    /// - Parameter run: The run that the image belongs to when it has no build ID.
    static func image(path: String?, buildID: [UInt8]?, run: UniqueID?) -> Int64 {
        var hash = ContentHash()
        hash.combine(path)
        hash.combine(bytes: buildID ?? [])
        hash.combine(bytes: run?.bytes ?? [])
        return hash.value
    }

    static func location(image: Int64, offset: Int64, kind: Int64) -> Int64 {
        var hash = ContentHash()
        hash.combine(UInt64(bitPattern: image))
        hash.combine(UInt64(bitPattern: offset))
        hash.combine(UInt64(bitPattern: kind))
        return hash.value
    }

    static func function(name: String?, rawName: String?, file: String?) -> Int64 {
        var hash = ContentHash()
        hash.combine(name)
        hash.combine(rawName)
        hash.combine(file)
        return hash.value
    }

    static func stack(
        _ entries: some Sequence<(location: Int64, isGuessed: Bool)>, isTruncated: Bool
    ) -> Int64 {
        var hash = ContentHash()
        hash.combine(isTruncated ? 1 : 0)
        for entry in entries {
            hash.combine(UInt64(bitPattern: entry.location))
            hash.combine(entry.isGuessed ? 1 : 0)
        }
        return hash.value
    }
}
