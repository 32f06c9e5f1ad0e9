// A 4-ary heap of slots by an instant, then by the order they were put in.
//
// Entries and positions are two flat buffers, so that moving an entry touches nothing else: with a million entries each
// buffer touched is a cache miss.

struct SlotHeap: ~Copyable {
    struct Entry {
        var instant: UInt64
        var sequence: UInt32
        var slot: UInt32

        /// The sequence wraps around; only entries with equal instants compare it.
        @inline(__always) static func < (left: Entry, right: Entry) -> Bool {
            left.instant != right.instant
                ? left.instant < right.instant
                : Int32(truncatingIfNeeded: left.sequence &- right.sequence) < 0
        }
    }

    /// The position of a slot without an entry. A free slot has the highest bit set, and the next free one below it.
    private static var nowhere: UInt32 { .max >> 1 }
    private static var freeBit: UInt32 { nowhere + 1 }
    /// No slot follows. Slots are below half of it.
    private static var noSlot: UInt32 { nowhere }

    /// Placed so that the four children of an entry share a cache line.
    private var entries: UnsafeMutablePointer<Entry>
    /// By slot: the index of its entry, or why it has none. The free slots are a list in it, because the removal of an
    /// entry touches it anyway.
    private var positions: UnsafeMutablePointer<UInt32>
    private(set) var count: UInt32 = 0
    private var capacity: UInt32
    private var nextSequence: UInt32 = 0
    private var firstFree = SlotHeap.noSlot

    /// - Parameter capacity: Slots are below it; see `grow`.
    init(capacity: UInt32) {
        self.capacity = capacity
        entries = Self.allocateEntries(Int(capacity))
        positions = .allocate(capacity: Int(capacity))
        positions.initialize(repeating: Self.nowhere, count: Int(capacity))
    }

    deinit {
        (entries - Self.unusedEntries).deallocate()
        positions.deallocate()
    }

    /// The earliest instant; the largest number when there is none.
    @inline(__always) var earliest: UInt64 { count == 0 ? .max : entries[0].instant }

    /// The slot with the earliest instant, if that is at most `limit` and no other's is.
    @inline(__always) func onlySlot(upTo limit: UInt64) -> UInt32? {
        guard count > 0, entries[0].instant <= limit else { return nil }
        for child in 1..<max(1, min(5, Int(count))) where entries[child].instant <= limit {
            return nil
        }
        return entries[0].slot
    }

    /// The entries up to `limit`, in order.
    func entries(upTo limit: UInt64) -> [Entry] {
        var found: [Entry] = []
        // A later timer hides everything below it, which is later still.
        var pending: [UInt32] = count > 0 ? [0] : []
        while let index = pending.popLast() {
            let entry = entries[Int(index)]
            guard entry.instant <= limit else { continue }
            found.append(entry)
            let child = 4 * index + 1
            if child < count { pending.append(contentsOf: child..<min(child + 4, count)) }
        }
        if found.count > 1 { found.sort(by: <) }
        return found
    }

    /// Adds an entry for a slot that has none.
    @inline(__always) mutating func insert(_ slot: UInt32, at instant: UInt64) {
        count += 1
        siftUp(newEntry(slot, instant), from: count - 1)
    }

    /// Takes the entry of a slot out, if it has one.
    @inline(__always) mutating func remove(_ slot: UInt32) { remove(slot, leaving: Self.nowhere) }

    /// The same, and frees the slot.
    @inline(__always) mutating func removeSlot(_ slot: UInt32) {
        remove(slot, leaving: firstFree | Self.freeBit)
        firstFree = slot
    }

    /// The slot that was freed last, which is free no more.
    @inline(__always) mutating func reuseSlot() -> UInt32? {
        guard firstFree != Self.noSlot else { return nil }
        let slot = firstFree
        firstFree = positions[Int(slot)] & ~Self.freeBit
        return slot
    }

    /// Whether a slot that was used before is free now.
    func isFree(_ slot: UInt32) -> Bool { positions[Int(slot)] & Self.freeBit != 0 }

    @inline(__always) private mutating func remove(_ slot: UInt32, leaving: UInt32) {
        let position = positions[Int(slot)]
        positions[Int(slot)] = leaving
        guard position < Self.nowhere else { return }
        count -= 1
        guard position != count else { return }
        place(entries[Int(count)], from: position)
    }

    /// Moves the entry of a slot, if it has one, behind all of the same instant.
    @inline(__always) mutating func move(_ slot: UInt32, to instant: UInt64) {
        let position = positions[Int(slot)]
        guard position < Self.nowhere else { return }
        place(newEntry(slot, instant), from: position)
    }

    /// Makes room for slots below `larger`.
    mutating func grow(to larger: UInt32) {
        let moved = Self.allocateEntries(Int(larger))
        moved.moveInitialize(from: entries, count: Int(count))
        (entries - Self.unusedEntries).deallocate()
        entries = moved
        let positions = UnsafeMutablePointer<UInt32>.allocate(capacity: Int(larger))
        positions.moveInitialize(from: self.positions, count: Int(capacity))
        (positions + Int(capacity)).initialize(
            repeating: Self.nowhere, count: Int(larger - capacity))
        self.positions.deallocate()
        self.positions = positions
        capacity = larger
    }

    @inline(__always) private mutating func newEntry(_ slot: UInt32, _ instant: UInt64) -> Entry {
        defer { nextSequence &+= 1 }
        return Entry(instant: instant, sequence: nextSequence, slot: slot)
    }

    /// Puts an entry where it belongs, starting from a hole.
    private mutating func place(_ entry: Entry, from position: UInt32) {
        if position > 0 && entry < entries[Int((position - 1) / 4)] {
            siftUp(entry, from: position)
        } else {
            siftDown(entry, from: position)
        }
    }

    private mutating func siftUp(_ entry: Entry, from start: UInt32) {
        var position = start
        while position > 0 {
            let parent = (position - 1) / 4
            guard entry < entries[Int(parent)] else { break }
            store(entries[Int(parent)], at: position)
            position = parent
        }
        store(entry, at: position)
    }

    private mutating func siftDown(_ entry: Entry, from start: UInt32) {
        var position = start
        while true {
            let child = 4 * position + 1
            guard child < count else { break }
            let least = child + 3 < count ? leastOfFour(from: child) : leastOfLast(from: child)
            guard entries[Int(least)] < entry else { break }
            store(entries[Int(least)], at: position)
            position = least
        }
        store(entry, at: position)
    }

    /// Compared in pairs, so that the processor does not wait for one comparison to begin the next.
    @inline(__always) private func leastOfFour(from child: UInt32) -> UInt32 {
        let four = entries + Int(child)
        let left: UInt32 = four[1] < four[0] ? 1 : 0
        let right: UInt32 = four[3] < four[2] ? 3 : 2
        return child + (four[Int(right)] < four[Int(left)] ? right : left)
    }

    /// The least of the last entries, which are fewer than four.
    @inline(__always) private func leastOfLast(from child: UInt32) -> UInt32 {
        var least = child
        for other in child + 1..<max(child + 1, count)
        where entries[Int(other)] < entries[Int(least)] { least = other }
        return least
    }

    @inline(__always) private mutating func store(_ entry: Entry, at position: UInt32) {
        (entries + Int(position)).initialize(to: entry)
        positions[Int(entry.slot)] = position
    }

    private static let unusedEntries = 3

    private static func allocateEntries(_ capacity: Int) -> UnsafeMutablePointer<Entry> {
        UnsafeMutableRawPointer.allocate(
            byteCount: (unusedEntries + capacity) * MemoryLayout<Entry>.stride, alignment: 64
        ).bindMemory(to: Entry.self, capacity: unusedEntries + capacity) + unusedEntries
    }
}
