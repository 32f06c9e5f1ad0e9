// The timers of one mode, in a 4-ary heap by deadline, then by the order they were added.
//
// A timer keeps a slot for as long as it is in the mode; the slot knows where its entry is. Entries and slots are two flat
// buffers, so that moving an entry touches no timer. While a timer's handler runs, its slot has no entry.

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

    private struct Slot {
        var timer: Unmanaged<LoopTimer>?
        /// The index of its entry; `none` while its handler runs; the next free slot when it is free.
        var position: UInt32
    }

    private static let none = UInt32.max

    private var entries: UnsafeMutablePointer<Entry>
    private var slots: UnsafeMutablePointer<Slot>
    private var entryCount: UInt32 = 0
    private var slotCount: UInt32 = 0
    private var capacity: UInt32 = 16
    private var freeSlot = TimerHeap.none
    private var nextSequence: UInt32 = 0

    /// How many timers are in the mode, those whose handler runs included.
    private(set) var count = 0
    /// Some timer has a tolerance, so that the wake-up time is not simply the earliest deadline.
    var hasTolerance = false

    init() {
        entries = .allocate(capacity: Int(capacity))
        slots = .allocate(capacity: Int(capacity))
    }

    deinit {
        for slot in 0..<Int(slotCount) { slots[slot].timer?.release() }
        entries.deallocate()
        slots.deallocate()
    }

    /// The earliest deadline; the largest number when there is none.
    var earliest: UInt64 { entryCount == 0 ? .max : entries[0].deadline }

    /// The earliest timer that is not firing.
    var first: LoopTimer? { entryCount == 0 ? nil : timer(in: entries[0].slot) }

    mutating func insert(_ timer: LoopTimer, deadline: UInt64) -> UInt32 {
        let slot: UInt32
        if freeSlot != Self.none {
            slot = freeSlot
            freeSlot = slots[Int(slot)].position
        } else {
            if slotCount == capacity { grow() }
            slot = slotCount
            slotCount += 1
        }
        (slots + Int(slot)).initialize(
            to: Slot(timer: .passRetained(timer), position: Self.none))
        count += 1
        if timer.toleranceNanoseconds > 0 { hasTolerance = true }
        resume(slot, deadline: deadline)
        return slot
    }

    /// Takes a timer out; the caller keeps it alive until the lock is released.
    mutating func remove(_ slot: UInt32) {
        suspend(slot)
        slots[Int(slot)].timer?.release()
        slots[Int(slot)] = Slot(timer: nil, position: freeSlot)
        freeSlot = slot
        count -= 1
        if count == 0 { hasTolerance = false }
    }

    /// Takes the entry out while the handler runs. The timer stays in the mode.
    mutating func suspend(_ slot: UInt32) {
        let position = slots[Int(slot)].position
        guard position != Self.none else { return }
        slots[Int(slot)].position = Self.none
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
        let position = slots[Int(slot)].position
        guard position != Self.none else { return }
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

    /// All timers, in no order, with the deadline of each; nil while its handler runs.
    func forEach(_ body: (LoopTimer) -> Void) {
        for slot in 0..<slotCount {
            if let timer = slots[Int(slot)].timer { body(timer.takeUnretainedValue()) }
        }
    }

    @inline(__always) private func timer(in slot: UInt32) -> LoopTimer {
        slots[Int(slot)].timer!.takeUnretainedValue()
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
        slots[Int(entry.slot)].position = position
    }

    private mutating func grow() {
        let larger = capacity * 2
        let newEntries = UnsafeMutablePointer<Entry>.allocate(capacity: Int(larger))
        newEntries.moveInitialize(from: entries, count: Int(entryCount))
        entries.deallocate()
        entries = newEntries
        let newSlots = UnsafeMutablePointer<Slot>.allocate(capacity: Int(larger))
        newSlots.moveInitialize(from: slots, count: Int(slotCount))
        slots.deallocate()
        slots = newSlots
        capacity = larger
    }
}
