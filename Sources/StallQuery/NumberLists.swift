// Lists of numbers, each kept once. Flat: millions of stalls have up to as many lists of stacks, and an array for each
// would take more memory than what it holds.

/// Numbers distinct lists from 0, in order of first occurrence.
package struct NumberLists: Sendable {
    /// Where a list begins, and in the last 24 bits a part of its hash, which is compared first: the numbers themselves
    /// are mostly not in the processor's cache.
    private struct Row {
        private let bits: UInt64

        init(first: Int, hash: UInt32) {
            bits = UInt64(first) << 24 | UInt64(hash & 0xff_ffff)
        }

        var first: Int { Int(bits >> 24) }
        func mayHave(_ hash: UInt32) -> Bool {
            UInt32(truncatingIfNeeded: bits ^ UInt64(hash)) << 8 == 0
        }
    }

    private var rows: [Row] = []
    /// All lists, one behind the other.
    package private(set) var numbers: [Int32] = []
    /// Open addressing: the number of a list plus one, 0 for an empty slot.
    private var slots: [Int32] = Array(repeating: 0, count: 1024)
    /// Drawn again for each table, so that no file can choose lists that all belong in one slot.
    private let multiplier = UInt64.random(in: 0 ... .max) | 1

    package init() {}

    package var count: Int { rows.count }

    /// Where a list lies in `numbers`.
    package func range(of list: Int32) -> Range<Int> {
        let next = Int(list) + 1
        return rows[Int(list)].first..<(next < rows.count ? rows[next].first : numbers.count)
    }

    package subscript(list: Int32) -> ArraySlice<Int32> { numbers[range(of: list)] }

    /// The number of a list, which is added when it is new.
    package mutating func add(_ list: [Int32]) -> Int32 {
        let hash = hash(list[...])
        var slot = Int(hash) & (slots.count - 1)
        while slots[slot] != 0 {
            let known = slots[slot] - 1
            if rows[Int(known)].mayHave(hash), holds(known, list) { return known }
            slot = (slot + 1) & (slots.count - 1)
        }
        rows.append(Row(first: numbers.count, hash: hash))
        numbers += list
        slots[slot] = Int32(rows.count)
        if rows.count * 2 > slots.count { grow() }
        return Int32(rows.count - 1)
    }

    private func hash(_ list: ArraySlice<Int32>) -> UInt32 {
        var hash = UInt64(truncatingIfNeeded: list.count)
        for number in list {
            hash = (hash ^ UInt64(UInt32(bitPattern: number))) &* multiplier
            hash ^= hash >> 32
        }
        return UInt32(truncatingIfNeeded: hash)
    }

    private func holds(_ known: Int32, _ list: [Int32]) -> Bool {
        let range = range(of: known)
        guard range.count == list.count else { return false }
        for index in list.indices where numbers[range.lowerBound + index] != list[index] {
            return false
        }
        return true
    }

    private mutating func grow() {
        slots = Array(repeating: 0, count: slots.count * 2)
        for number in 0..<Int32(rows.count) {
            var slot = Int(hash(self[number])) & (slots.count - 1)
            while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
            slots[slot] = number + 1
        }
    }
}
