// Distinct texts as numbers. A profile repeats its lines thousands of times; each is parsed once.

internal import Glibc

/// Numbers texts from 0, in the order in which they come. Their bytes are in one block.
struct TextNumbers {
    private var bytes: [UInt8] = []
    private var ends: [Int] = []
    private var hashes: [Int] = []
    /// A table with open addressing, of a power of two: a number, or -1.
    private var slots = [Int32](repeating: -1, count: 1024)

    var count: Int { ends.count }
    var byteCount: Int { bytes.count }

    subscript(number: Int) -> ArraySlice<UInt8> {
        bytes[(number > 0 ? ends[number - 1] : 0)..<ends[number]]
    }

    /// The number of a text, which is new if there is none yet. The hash is seeded: no input makes it slow.
    mutating func number(of text: ArraySlice<UInt8>) -> Int {
        var hasher = Hasher()
        text.withUnsafeBytes { hasher.combine(bytes: $0) }
        let hash = hasher.finalize()
        var slot = hash & (slots.count - 1)
        while slots[slot] >= 0 {
            let number = Int(slots[slot])
            if hashes[number] == hash, isEqual(number, text) { return number }
            slot = (slot + 1) & (slots.count - 1)
        }
        let number = count
        bytes += text
        ends.append(bytes.count)
        hashes.append(hash)
        slots[slot] = Int32(truncatingIfNeeded: number)
        if count * 2 > slots.count { grow() }
        return number
    }

    private func isEqual(_ number: Int, _ text: ArraySlice<UInt8>) -> Bool {
        let range = (number > 0 ? ends[number - 1] : 0)..<ends[number]
        guard range.count == text.count, !range.isEmpty else { return range.count == text.count }
        return bytes.withUnsafeBytes { all in
            text.withUnsafeBytes { text in
                guard let stored = all.baseAddress, let given = text.baseAddress else {
                    return false
                }
                return memcmp(stored + range.lowerBound, given, text.count) == 0
            }
        }
    }

    mutating func removeAll() { self = TextNumbers() }

    private mutating func grow() {
        slots = [Int32](repeating: -1, count: slots.count * 2)
        for number in 0..<count {
            var slot = hashes[number] & (slots.count - 1)
            while slots[slot] >= 0 { slot = (slot + 1) & (slots.count - 1) }
            slots[slot] = Int32(truncatingIfNeeded: number)
        }
    }
}
