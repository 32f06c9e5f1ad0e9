// A hash that is part of the file format: the same bytes give the same value in every process, build and version.
// Swift's Hasher is seeded per process and must never be stored.

/// A fixed 64-bit hash of a sequence of fields, for interning across stores.
///
/// Every field is framed (strings and bytes by their length), so that ("ab", "c") and ("a", "bc") differ.
/// **Source:** FNV-1a (draft-eastlake-fnv), then the 64-bit finalizer of MurmurHash3.
package struct ContentHash: Sendable {
    private var state: UInt64 = 0xcbf2_9ce4_8422_2325

    package init() {}

    package mutating func combine(bytes: some Sequence<UInt8>) {
        var count: UInt64 = 0
        for byte in bytes {
            mix(byte)
            count += 1
        }
        combine(count)
    }

    package mutating func combine(_ text: String?) {
        guard var text else { return combine(UInt64.max) }
        text.withUTF8 { combine(bytes: $0) }
    }

    package mutating func combine(_ integer: UInt64) {
        for shift in stride(from: 0, to: 64, by: 8) {
            mix(UInt8(truncatingIfNeeded: integer >> UInt64(shift)))
        }
    }

    /// The value as SQLite stores it: a signed integer with the same bits.
    package var value: Int64 {
        var value = state
        value = (value ^ value >> 33) &* 0xff51_afd7_ed55_8ccd
        value = (value ^ value >> 33) &* 0xc4ce_b9fe_1a85_ec53
        return Int64(bitPattern: value ^ value >> 33)
    }

    private mutating func mix(_ byte: UInt8) {
        state = (state ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
    }
}
