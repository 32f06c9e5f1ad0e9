// Identifiers that modules share: of threads, binaries and reports.

/// A kernel thread id (`gettid`). The main thread's equals the process id; work of the main actor need not run there.
public struct ThreadID: Hashable, Sendable {
    /// The value of `gettid` on that thread.
    public let rawValue: Int32

    /// Wraps a `gettid` value.
    public init(rawValue: Int32) { self.rawValue = rawValue }
}

/// The GNU build ID note of an ELF image, or another format's 16-byte image UUID.
public struct BuildID: Hashable, Sendable, CustomStringConvertible {
    /// The note's bytes; 20 for the linkers in use, 8 or 16 occur.
    public let bytes: [UInt8]

    /// Wraps the bytes of the note.
    public init(bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

    /// Reads lower or upper case hexadecimal digits; nil when empty, odd or not hexadecimal.
    package init?(hexadecimal text: some StringProtocol) {
        guard let bytes = [UInt8](hexadecimal: text), !bytes.isEmpty else { return nil }
        self.bytes = bytes
    }

    /// Reads the note of the GNU linker among an image's notes; nil without one. Any bytes may be given.
    ///
    /// - Parameter alignment: Of the notes: 8, else 4 is taken.
    ///
    /// **Source:** elf(5), `Nhdr`.
    package init?(inNotes notes: [UInt8], alignment: UInt64 = 4) {
        func word(at offset: Int) -> Int {
            notes[offset..<offset + 4].reversed().reduce(0) { $0 << 8 | Int($1) }
        }
        let mask = alignment == 8 ? 7 : 3
        var at = 0
        while at + 12 <= notes.count {
            let (nameSize, size) = (word(at: at), word(at: at + 4))
            let content = (at + 12 + nameSize + mask) & ~mask
            guard content <= notes.count, size <= notes.count - content else { return nil }
            if word(at: at + 8) == 3, nameSize == 4,
                notes[at + 12..<at + 16].elementsEqual("GNU\0".utf8)
            {
                guard size > 0 else { return nil }
                bytes = Array(notes[content..<content + size])
                return
            }
            at = (content + size + mask) & ~mask
        }
        return nil
    }

    public var description: String { bytes.hexadecimal }
}

/// A 16-byte universally unique identifier; reports and process runs use version 7 (time ordered).
public struct UniqueID: Hashable, Sendable, CustomStringConvertible {
    // Two words, not an array, so that a million identifiers need no allocations.
    private let high: UInt64
    private let low: UInt64

    /// The first and the last eight bytes as big-endian numbers.
    package var words: (high: UInt64, low: UInt64) { (high, low) }

    /// Wraps sixteen bytes; nil for any other count.
    package init?(bytes: some Sequence<UInt8>) {
        var words: (high: UInt64, low: UInt64) = (0, 0)
        var count = 0
        for byte in bytes {
            words = (words.high << 8 | words.low >> 56, words.low << 8 | UInt64(byte))
            count += 1
        }
        guard count == 16 else { return nil }
        (high, low) = words
    }

    /// Wraps sixteen bytes; nil for any other count.
    package init?(bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 16 else { return nil }
        high = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
        low = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    package init(_ words: (high: UInt64, low: UInt64)) { (high, low) = words }

    /// An identifier with the same time. Equal numbers give equal identifiers; `number` must be below 2^62.
    package func derived(_ number: UInt64) -> UniqueID { UniqueID((high, low ^ number)) }

    /// Makes a version-7 identifier: 48 bits of milliseconds, then 74 random bits.
    ///
    /// **Source:** RFC 9562, section 5.7.
    package init(version7At time: UnixTime, random: inout some RandomNumberGenerator) {
        self.init(version7At: time, bits: (random.next(), random.next()))
    }

    /// The same with the system's random bits. The system's generator has no size: passed on as above, those of all threads
    /// seem to be one to ThreadSanitizer.
    package init(version7At time: UnixTime) {
        let all = UInt64.min...UInt64.max
        self.init(version7At: time, bits: (.random(in: all), .random(in: all)))
    }

    private init(version7At time: UnixTime, bits: (UInt64, UInt64)) {
        let milliseconds = UInt64(clamping: time.microseconds / 1000)
        high = (milliseconds << 16) | 0x7000 | (bits.0 & 0x0fff)
        low = (1 << 63) | bits.1 & ((1 << 62) - 1)
    }

    /// The creation time of a version-7 identifier, in milliseconds.
    package var made: UnixTime { UnixTime(microseconds: Int64(high >> 16) * 1000) }

    /// Sixteen bytes, in the order they are written.
    public var bytes: [UInt8] { withBytes { Array($0) } }

    /// Calls `body` with the sixteen bytes, in the order they are written.
    package func withBytes<Answer>(_ body: (UnsafeRawBufferPointer) -> Answer) -> Answer {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian), body)
    }

    /// How many leading hexadecimal digits the two identifiers have in common.
    package func sharedDigitCount(with other: UniqueID) -> Int {
        let difference = high ^ other.high
        if difference != 0 { return difference.leadingZeroBitCount / 4 }
        return 16 + (low ^ other.low).leadingZeroBitCount / 4
    }

    /// The 32 hexadecimal digits without dashes. The command line accepts prefixes of it.
    public var description: String {
        String(unsafeUninitializedCapacity: 32) { digits in
            for place in 0..<32 {
                let word = place < 16 ? high : low
                let value = UInt8(truncatingIfNeeded: word >> UInt64(60 - place % 16 * 4))
                digits[place] = value.lowHexadecimalDigit
            }
            return 32
        }
    }
}

extension UInt8 {
    /// The lower-case hexadecimal digit of the lowest four bits, in ASCII.
    package var lowHexadecimalDigit: UInt8 {
        let value = self & 15
        return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}

extension Sequence<UInt8> {
    /// Two lower-case hexadecimal digits per byte.
    package var hexadecimal: String {
        var digits: [UInt8] = []
        digits.reserveCapacity(underestimatedCount * 2)
        for byte in self {
            digits.append((byte >> 4).lowHexadecimalDigit)
            digits.append(byte.lowHexadecimalDigit)
        }
        return String(decoding: digits, as: UTF8.self)
    }
}

extension [UInt8] {
    /// Reads pairs of hexadecimal digits; nil when odd or not hexadecimal.
    package init?(hexadecimal text: some StringProtocol) {
        let digits = text.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        guard digits.count.isMultiple(of: 2), !digits.contains(nil) else { return nil }
        self = stride(from: 0, to: digits.count, by: 2).map {
            UInt8(digits[$0]! << 4 | digits[$0 + 1]!)
        }
    }
}
