// Numbers of places. Exports look up each frame of millions of stacks, and Swift's dictionary takes most of its time to
// hash against chosen keys; these are row numbers.

internal import StallStore

/// Numbers the places of stacks from 0, in the order in which they are first asked for.
struct PlaceNumbers {
    private(set) var entries: [StackEntry] = []
    /// Open addressing: the number of a place plus one, 0 for an empty slot.
    private var slots: [Int32] = Array(repeating: 0, count: 1024)

    var count: Int { entries.count }

    /// The number of a place; nil before it is added.
    func number(of entry: StackEntry) -> Int32? {
        let slot = slot(of: entry)
        return slots[slot] == 0 ? nil : slots[slot] - 1
    }

    /// The number of a place, which is added when it is new.
    mutating func add(_ entry: StackEntry) -> Int32 {
        let slot = slot(of: entry)
        if slots[slot] != 0 { return slots[slot] - 1 }
        entries.append(entry)
        slots[slot] = Int32(entries.count)
        if entries.count * 2 > slots.count { grow() }
        return Int32(entries.count - 1)
    }

    /// Where the place is, or belongs.
    private func slot(of entry: StackEntry) -> Int {
        let key = UInt64(bitPattern: entry.location) << 1 | (entry.isGuessed ? 1 : 0)
        var slot = Int(truncatingIfNeeded: (key &* 0x9e37_79b9_7f4a_7c15) >> 32) & (slots.count - 1)
        while slots[slot] != 0, entries[Int(slots[slot]) - 1] != entry {
            slot = (slot + 1) & (slots.count - 1)
        }
        return slot
    }

    private mutating func grow() {
        slots = Array(repeating: 0, count: slots.count * 2)
        for (number, entry) in entries.enumerated() { slots[slot(of: entry)] = Int32(number + 1) }
    }
}
