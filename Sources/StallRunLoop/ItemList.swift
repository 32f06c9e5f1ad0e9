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
        let entry = entries[Int(slot)]
        if entry.previous != Self.none {
            entries[Int(entry.previous)].next = entry.next
        } else {
            first = entry.next
        }
        if entry.next != Self.none {
            entries[Int(entry.next)].previous = entry.previous
        } else {
            last = entry.previous
        }
        entries[Int(slot)] = Entry(item: nil, next: firstFree, previous: Self.none)
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

/// Where an item is: in one mode of one loop, or among the loop's common items, which mode `.common` stands for.
struct ItemPlace {
    let loop: EventRunLoop
    let mode: LoopMode
    /// Its slot in the list of that mode.
    let slot: UInt32
    /// Nil for the common items.
    let items: ModeItems?
}

extension [ItemPlace] {
    /// The place in one mode of one loop. There are as many places as the item is in modes.
    func first(in mode: LoopMode, of loop: EventRunLoop) -> ItemPlace? {
        first { $0.mode == mode && $0.loop === loop }
    }

    mutating func takeAll() -> [ItemPlace] {
        defer { self = [] }
        return self
    }

    /// Takes the place in one mode of one loop out; nil when the item is not there.
    mutating func remove(from mode: LoopMode, of loop: EventRunLoop) -> ItemPlace? {
        guard let index = firstIndex(where: { $0.mode == mode && $0.loop === loop }) else {
            return nil
        }
        return remove(at: index)
    }
}
