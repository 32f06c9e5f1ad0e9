// Items in the order they were added. Every item has a slot, under which it is found and removed in constant time; the
// item itself remembers the slot, so that nothing is ever searched.

struct ItemList<Item: AnyObject> {
    /// No slot, and the end of a chain of slots.
    static var none: UInt32 { .max }

    private struct Entry {
        /// Nil in a free slot.
        var item: Item?
        /// The slot of the item added after this one; in a free slot the next free one.
        var next: UInt32
        var previous: UInt32
    }

    private var entries: [Entry] = []
    private var first = Self.none
    private var last = Self.none
    private var firstFree = Self.none
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// The item in a slot; nil when the slot is free.
    subscript(slot: UInt32) -> Item? {
        slot < entries.count ? entries[Int(slot)].item : nil
    }

    /// Adds an item behind all others and returns its slot.
    mutating func append(_ item: Item) -> UInt32 {
        let entry = Entry(item: item, next: Self.none, previous: last)
        let slot: UInt32
        if firstFree != Self.none {
            slot = firstFree
            firstFree = entries[Int(slot)].next
            entries[Int(slot)] = entry
        } else {
            slot = UInt32(entries.count)
            entries.append(entry)
        }
        if last != Self.none { entries[Int(last)].next = slot } else { first = slot }
        last = slot
        count += 1
        return slot
    }

    /// Frees a used slot. The caller keeps the item alive until the loop's lock is released.
    mutating func remove(_ slot: UInt32) {
        entries.withUnsafeMutableBufferPointer { entries in
            let (next, previous) = (entries[Int(slot)].next, entries[Int(slot)].previous)
            if previous != Self.none { entries[Int(previous)].next = next } else { first = next }
            if next != Self.none { entries[Int(next)].previous = previous } else { last = previous }
            entries[Int(slot)].item = nil
            entries[Int(slot)].next = firstFree
        }
        firstFree = slot
        count -= 1
        if count == 0 && entries.count > 1_000 { self = Self() }
    }
}

extension ItemList: Sequence {
    struct Iterator: IteratorProtocol {
        fileprivate let list: ItemList
        fileprivate var slot: UInt32

        mutating func next() -> Item? {
            guard slot != ItemList.none else { return nil }
            let entry = list.entries[Int(slot)]
            slot = entry.next
            return entry.item
        }
    }

    func makeIterator() -> Iterator { Iterator(list: self, slot: first) }
    var underestimatedCount: Int { count }
}
