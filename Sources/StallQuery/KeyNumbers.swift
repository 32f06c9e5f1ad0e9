// Row numbers as small numbers. Answers look up each stack of millions of reports and each location of millions of
// stacks, and Swift's dictionary takes most of its time to hash.

/// Numbers keys from 0, in order of first occurrence.
package struct KeyNumbers: Sendable {
    package private(set) var keys: [Int64] = []
    /// The number of each small key plus one: most row numbers are small, and each is then found in one read.
    private var near: [Int32] = []
    private static let nearCount = 1 << 18
    /// For the others. Open addressing: the number of a key plus one, 0 for an empty slot.
    private var slots: [Int32] = Array(repeating: 0, count: 1024)
    /// Drawn again for each table, so that no file can choose keys that all belong in one slot.
    private let multiplier = UInt64.random(in: 0 ... .max) | 1

    package init() {}

    package init(_ keys: some Sequence<Int64>) {
        for key in keys { _ = add(key) }
    }

    package var count: Int { keys.count }

    /// The number of a key; nil before it is added.
    package func number(of key: Int64) -> Int32? {
        if key >= 0, key < near.count {
            return near[Int(key)] == 0 ? nil : near[Int(key)] - 1
        }
        let slot = slot(of: key)
        return slots[slot] == 0 ? nil : slots[slot] - 1
    }

    /// The number of a key, which is added when it is new.
    package mutating func add(_ key: Int64) -> Int32 {
        if key >= 0, key < Self.nearCount { return addNear(Int(key)) }
        let slot = slot(of: key)
        if slots[slot] != 0 { return slots[slot] - 1 }
        keys.append(key)
        slots[slot] = Int32(keys.count)
        if keys.count * 2 > slots.count { grow() }
        return Int32(keys.count - 1)
    }

    private mutating func addNear(_ key: Int) -> Int32 {
        if key >= near.count {
            let count = min(Self.nearCount, max(1024, key * 2))
            near += repeatElement(0, count: count - near.count)
        }
        if near[key] == 0 {
            keys.append(Int64(key))
            near[key] = Int32(keys.count)
        }
        return near[key] - 1
    }

    /// Where the key is, or belongs.
    private func slot(of key: Int64) -> Int {
        let hash = (UInt64(bitPattern: key) &* multiplier) >> 32
        var slot = Int(truncatingIfNeeded: hash) & (slots.count - 1)
        while slots[slot] != 0, keys[Int(slots[slot]) - 1] != key {
            slot = (slot + 1) & (slots.count - 1)
        }
        return slot
    }

    private mutating func grow() {
        slots = Array(repeating: 0, count: slots.count * 2)
        for (number, key) in keys.enumerated() where key < 0 || key >= Self.nearCount {
            slots[slot(of: key)] = Int32(number + 1)
        }
    }
}
