// Lists of numbers, each kept once. Flat: millions of stalls have up to as many lists of stacks, and an array for each
// would take more memory than what it holds.

/// Numbers distinct lists from 0, in order of first occurrence.
package struct NumberLists: Sendable {
    /// Where a list begins, and in the last 24 bits a part of its hash, which is compared first: the numbers themselves
    /// are mostly not in the processor's cache. Zero for none, since a list has its head before it.
    private struct Slot {
        private let bits: UInt64

        static let empty = Slot(first: 0, hash: 0)

        init(first: Int, hash: UInt32) {
            bits = UInt64(first) << 24 | UInt64(hash & 0xff_ffff)
        }

        var isEmpty: Bool { bits == 0 }
        var first: Int { Int(bits >> 24) }
        func mayHave(_ hash: UInt32) -> Bool {
            UInt32(truncatingIfNeeded: bits ^ UInt64(hash)) << 8 == 0
        }
    }

    /// Where each list begins.
    private var firsts: [Int] = []
    /// All lists, one behind the other. Before each are its number and its count, so that one access to memory finds a
    /// list by its content.
    package private(set) var numbers: [Int32] = []
    /// Open addressing.
    private var slots = [Slot](repeating: .empty, count: 1024)
    /// Drawn again for each table, so that no file can choose lists that all belong in one slot.
    private let multiplier = UInt64.random(in: 0 ... .max) | 1

    package init() {}

    package var count: Int { firsts.count }

    /// Where a list lies in `numbers`.
    package func range(of list: Int32) -> Range<Int> { range(from: firsts[Int(list)]) }

    private func range(from first: Int) -> Range<Int> {
        first..<first + Int(numbers[first - 1])
    }

    package subscript(list: Int32) -> ArraySlice<Int32> { numbers[range(of: list)] }

    /// The number of a list, which is added when it is new.
    package mutating func add(_ list: [Int32]) -> Int32 {
        let hash = hash(list[...])
        var slot = Int(hash) & (slots.count - 1)
        while !slots[slot].isEmpty {
            let first = slots[slot].first
            if slots[slot].mayHave(hash), holds(first, list) { return numbers[first - 2] }
            slot = (slot + 1) & (slots.count - 1)
        }
        let number = Int32(firsts.count)
        numbers.append(number)
        numbers.append(Int32(list.count))
        firsts.append(numbers.count)
        slots[slot] = Slot(first: numbers.count, hash: hash)
        numbers += list
        if firsts.count * 2 > slots.count { grow() }
        return number
    }

    private func hash(_ list: ArraySlice<Int32>) -> UInt32 {
        var hash = UInt64(truncatingIfNeeded: list.count)
        for number in list {
            hash = (hash ^ UInt64(UInt32(bitPattern: number))) &* multiplier
            hash ^= hash >> 32
        }
        return UInt32(truncatingIfNeeded: hash)
    }

    private func holds(_ first: Int, _ list: [Int32]) -> Bool {
        guard Int(numbers[first - 1]) == list.count else { return false }
        for index in list.indices where numbers[first + index] != list[index] { return false }
        return true
    }

    private mutating func grow() {
        slots = Array(repeating: .empty, count: slots.count * 2)
        for first in firsts {
            let hash = hash(numbers[range(from: first)])
            var slot = Int(hash) & (slots.count - 1)
            while !slots[slot].isEmpty { slot = (slot + 1) & (slots.count - 1) }
            slots[slot] = Slot(first: first, hash: hash)
        }
    }
}
