// The timers of one mode, in a 4-ary heap by deadline, then by the order they were added.
//
// A timer keeps a slot for as long as it is in the mode; the slot knows where its entry is. Entries, positions and timers
// are three flat buffers, so that moving an entry touches no timer, and cancelling one only its position: with a million
// timers, each buffer touched is a cache miss. While a timer's handler runs, its slot has no entry.

struct TimerHeap: ~Copyable {
    private struct Entry {
        var deadline: UInt64
        var sequence: UInt32
        var slot: UInt32

        /// The sequence wraps around; only timers with equal deadlines compare it.
        @inline(__always) static func < (left: Entry, right: Entry) -> Bool {
            left.deadline != right.deadline
                ? left.deadline < right.deadline
                : Int32(truncatingIfNeeded: left.sequence &- right.sequence) < 0
        }
    }

    /// A slot whose timer is firing and has no entry.
    private static let suspended: UInt32 = 0x7fff_ffff
    /// Marks a free slot; the other bits are the next free one.
    private static let free: UInt32 = 0x8000_0000

    /// Placed so that the four children of an entry share a cache line.
    private var entries: UnsafeMutablePointer<Entry>
    /// By slot: the index of its entry, `suspended`, or `free` and the next free slot.
    private var positions: UnsafeMutablePointer<UInt32>
    /// By slot; only those of used slots mean something.
    private var timers: UnsafeMutablePointer<Unmanaged<LoopTimer>>
    private var entryCount: UInt32 = 0
    private var slotCount: UInt32 = 0
    private var capacity: UInt32 = 16
    private var firstFree = TimerHeap.suspended
    private var nextSequence: UInt32 = 0

    /// How many timers are in the mode, those whose handler runs included.
    private(set) var count = 0
    /// Some timer has a tolerance, so that the wake-up time is not simply the earliest deadline.
    var hasTolerance = false

    init() {
        entries = Self.allocateEntries(Int(capacity))
        positions = .allocate(capacity: Int(capacity))
        timers = .allocate(capacity: Int(capacity))
    }

    deinit {
        for slot in 0..<Int(slotCount) where isUsed(slot) { timers[slot].release() }
        (entries - Self.unusedEntries).deallocate()
        positions.deallocate()
        timers.deallocate()
    }

    /// The earliest deadline; the largest number when there is none.
    var earliest: UInt64 { entryCount == 0 ? .max : entries[0].deadline }

    /// The timer that is due at `limit`, if it is the only one.
    func onlyDue(at limit: UInt64) -> LoopTimer? {
        guard entryCount > 0, entries[0].deadline <= limit else { return nil }
        for child in 1..<max(1, min(5, Int(entryCount))) where entries[child].deadline <= limit {
            return nil
        }
        return timer(in: entries[0].slot)
    }

    mutating func insert(_ timer: LoopTimer, deadline: UInt64) -> UInt32 {
        var slot = firstFree
        if slot != Self.suspended {
            firstFree = positions[Int(slot)] & ~Self.free
        } else {
            if slotCount == capacity { grow() }
            slot = slotCount
            slotCount += 1
        }
        (timers + Int(slot)).initialize(to: .passRetained(timer))
        count += 1
        if timer.toleranceNanoseconds > 0 { hasTolerance = true }
        resume(slot, deadline: deadline)
        return slot
    }

    /// Takes `timer` out of its slot; the caller keeps it alive until the lock is released.
    mutating func remove(_ slot: UInt32, of timer: LoopTimer) {
        suspend(slot)
        positions[Int(slot)] = Self.free | firstFree
        firstFree = slot
        Unmanaged.passUnretained(timer).release()
        count -= 1
        if count == 0 { hasTolerance = false }
    }

    /// Takes the entry out while the handler runs. The timer stays in the mode.
    mutating func suspend(_ slot: UInt32) {
        let position = positions[Int(slot)]
        guard position != Self.suspended else { return }
        positions[Int(slot)] = Self.suspended
        entryCount -= 1
        guard position != entryCount else { return }
        place(entries[Int(entryCount)], from: position)
    }

    /// Puts the entry back after `suspend`.
    mutating func resume(_ slot: UInt32, deadline: UInt64) {
        let entry = Entry(deadline: deadline, sequence: nextSequence, slot: slot)
        nextSequence &+= 1
        entryCount += 1
        siftUp(entry, from: entryCount - 1)
    }

    mutating func move(_ slot: UInt32, to deadline: UInt64) {
        let position = positions[Int(slot)]
        guard position != Self.suspended else { return }
        let entry = Entry(deadline: deadline, sequence: nextSequence, slot: slot)
        nextSequence &+= 1
        place(entry, from: position)
    }

    /// All timers with a deadline up to `limit`, in the order they are to be called.
    func due(at limit: UInt64) -> [LoopTimer] {
        var found: [Entry] = []
        visit(where: { $0.deadline <= limit }) { found.append($0) }
        if found.count > 1 { found.sort(by: <) }
        return found.map { timer(in: $0.slot) }
    }

    /// The latest instant to wake at so that every timer fires within its tolerance.
    func wakeDeadline() -> UInt64 {
        guard hasTolerance else { return earliest }
        var latest = UInt64.max
        visit(where: { $0.deadline <= latest }) { entry in
            let (sum, overflow) = entry.deadline.addingReportingOverflow(
                timer(in: entry.slot).toleranceNanoseconds)
            latest = min(latest, overflow ? .max : sum)
        }
        return latest
    }

    /// All timers, those whose handler runs included, in no order.
    func forEach(_ body: (LoopTimer) -> Void) {
        for slot in 0..<Int(slotCount) where isUsed(slot) {
            body(timers[slot].takeUnretainedValue())
        }
    }

    private func isUsed(_ slot: Int) -> Bool { positions[slot] & Self.free == 0 }

    @inline(__always) private func timer(in slot: UInt32) -> LoopTimer {
        timers[Int(slot)].takeUnretainedValue()
    }

    /// Visits entries from the top; what fails the test hides everything below it, which is later.
    private func visit(where test: (Entry) -> Bool, _ body: (Entry) -> Void) {
        var pending: [UInt32] = entryCount > 0 ? [0] : []
        while let index = pending.popLast() {
            let entry = entries[Int(index)]
            guard test(entry) else { continue }
            body(entry)
            let child = 4 * index + 1
            if child < entryCount { pending.append(contentsOf: child..<min(child + 4, entryCount)) }
        }
    }

    /// Puts an entry where the one at `position` was, or wherever it belongs from there.
    private mutating func place(_ entry: Entry, from position: UInt32) {
        if position > 0, entry < entries[Int((position - 1) / 4)] {
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
            guard child < entryCount else { break }
            var least = child
            for other in child + 1..<max(child + 1, min(child + 4, entryCount))
            where entries[Int(other)] < entries[Int(least)] { least = other }
            guard entries[Int(least)] < entry else { break }
            store(entries[Int(least)], at: position)
            position = least
        }
        store(entry, at: position)
    }

    @inline(__always) private mutating func store(_ entry: Entry, at position: UInt32) {
        (entries + Int(position)).initialize(to: entry)
        positions[Int(entry.slot)] = position
    }

    private mutating func grow() {
        precondition(capacity < Self.suspended / 2, "a mode holds at most a billion timers")
        let larger = capacity * 2
        let moved = Self.allocateEntries(Int(larger))
        moved.moveInitialize(from: entries, count: Int(entryCount))
        (entries - Self.unusedEntries).deallocate()
        entries = moved
        Self.move(&positions, Int(slotCount), toCapacity: Int(larger))
        Self.move(&timers, Int(slotCount), toCapacity: Int(larger))
        capacity = larger
    }

    private static let unusedEntries = 3

    private static func allocateEntries(_ capacity: Int) -> UnsafeMutablePointer<Entry> {
        UnsafeMutableRawPointer.allocate(
            byteCount: (unusedEntries + capacity) * MemoryLayout<Entry>.stride, alignment: 64
        ).bindMemory(to: Entry.self, capacity: unusedEntries + capacity) + unusedEntries
    }

    private static func move<Element>(
        _ buffer: inout UnsafeMutablePointer<Element>, _ count: Int, toCapacity capacity: Int
    ) {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity)
        larger.moveInitialize(from: buffer, count: count)
        buffer.deallocate()
        buffer = larger
    }
}
