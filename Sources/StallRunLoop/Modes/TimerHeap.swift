// The timers of one mode: by deadline, in order to fire them; and, as soon as one of them has a tolerance, by the
// latest instant at which each may fire, in order to sleep for as long as all of them allow.
//
// A timer keeps a slot for as long as it is in the mode. While its handler runs, the slot has no entry in the heaps; the entry
// of the last one is left where it was until the heap is read: mostly it is put back before.

struct TimerHeap: ~Copyable {
    /// By slot. Retained; that of a free slot is gone. Not touched by a removal: in a large heap each buffer touched is
    /// a cache miss.
    private var timers: UnsafeMutablePointer<Unmanaged<LoopTimer>>
    private var byDeadline: SlotHeap
    /// By deadline plus tolerance. Used while `hasTolerance`.
    private var byLatest = SlotHeap(capacity: 1)
    /// Some timer has a tolerance, so that the wake-up time is not simply the earliest deadline.
    private(set) var hasTolerance = false
    /// The slot whose entry was left in `byDeadline` although its timer fires. Never while `hasTolerance`.
    private var suspended = TimerHeap.noSlot
    private var slotCount: UInt32 = 0
    private var capacity: UInt32 = 16

    private static let most = UInt32.max >> 2
    private static var noSlot: UInt32 { .max }

    /// How many timers are in the mode, those whose handler runs included.
    private(set) var count = 0

    init() {
        timers = .allocate(capacity: Int(capacity))
        byDeadline = SlotHeap(capacity: capacity)
    }

    deinit {
        for slot in 0..<slotCount where !byDeadline.isFree(slot) { timers[Int(slot)].release() }
        timers.deallocate()
    }

    /// The earliest deadline; the largest number when there is none.
    var earliest: UInt64 {
        mutating get {
            settle()
            return byDeadline.earliest
        }
    }

    /// The latest instant to wake at so that every timer fires within its tolerance.
    mutating func wakeDeadline() -> UInt64 {
        settle()
        return hasTolerance ? byLatest.earliest : byDeadline.earliest
    }

    /// The timer that is due at `limit`, if it is the only one.
    mutating func onlyDue(at limit: UInt64) -> LoopTimer? {
        settle()
        return byDeadline.onlySlot(upTo: limit).map { timer(in: $0) }
    }

    /// All timers with a deadline up to `limit`, in the order they are to be called.
    mutating func due(at limit: UInt64) -> [LoopTimer] {
        settle()
        return byDeadline.entries(upTo: limit).map { timer(in: $0.slot) }
    }

    /// Adds a timer and returns its slot.
    mutating func insert(_ timer: LoopTimer, deadline: UInt64) -> UInt32 {
        settle()
        let slot = byDeadline.reuseSlot() ?? newSlot()
        timers[Int(slot)] = .passRetained(timer)
        count += 1
        if timer.toleranceNanoseconds > 0 && !hasTolerance { makeByLatest() }
        resume(slot, deadline: deadline)
        return slot
    }

    /// Takes `timer` out of its slot; the caller keeps it alive until the lock is released.
    mutating func remove(_ slot: UInt32, of timer: LoopTimer) {
        if suspended == slot { suspended = Self.noSlot }
        settle()
        byDeadline.removeSlot(slot)
        if hasTolerance { byLatest.remove(slot) }
        Unmanaged.passUnretained(timer).release()
        count -= 1
        guard count == 0, hasTolerance else { return }
        hasTolerance = false
        byLatest = SlotHeap(capacity: 1)
    }

    /// Takes the entry out while the handler runs. The timer stays in the mode.
    @inline(__always) mutating func suspend(_ slot: UInt32) {
        settle()
        if hasTolerance {
            byDeadline.remove(slot)
            byLatest.remove(slot)
        } else {
            suspended = slot
        }
    }

    /// Takes out the entry that was left.
    @inline(__always) private mutating func settle() {
        if suspended != Self.noSlot { takeOutSuspended() }
    }

    @inline(never) private mutating func takeOutSuspended() {
        byDeadline.remove(suspended)
        suspended = Self.noSlot
    }

    /// Puts the entry back after `suspend`.
    @inline(__always) mutating func resume(_ slot: UInt32, deadline: UInt64) {
        if suspended == slot {
            suspended = Self.noSlot
            return byDeadline.move(slot, to: deadline)
        }
        settle()
        byDeadline.insert(slot, at: deadline)
        guard hasTolerance else { return }
        let latest = latest(of: slot, deadline)
        byLatest.insert(slot, at: latest)
    }

    mutating func move(_ slot: UInt32, to deadline: UInt64) {
        settle()
        byDeadline.move(slot, to: deadline)
        guard hasTolerance else { return }
        let latest = latest(of: slot, deadline)
        byLatest.move(slot, to: latest)
    }

    /// The tolerance of the timer in a slot has changed.
    mutating func toleranceChanged(_ slot: UInt32, deadline: UInt64) {
        if hasTolerance {
            let latest = latest(of: slot, deadline)
            byLatest.move(slot, to: latest)
        } else if timer(in: slot).toleranceNanoseconds > 0 {
            makeByLatest()
        }
    }

    /// Whether the handler of one of them runs.
    var isAnyFiring: Bool { suspended != Self.noSlot || byDeadline.count != count }

    /// Those whose handler runs.
    func firing() -> [LoopTimer] {
        var found: [LoopTimer] = []
        forEach { if $0.isFiring { found.append($0) } }
        return found
    }

    /// All timers, those whose handler runs included, in no order.
    func forEach(_ body: (LoopTimer) -> Void) {
        for slot in 0..<slotCount where !byDeadline.isFree(slot) { body(timer(in: slot)) }
    }

    private mutating func makeByLatest() {
        settle()
        hasTolerance = true
        byLatest = SlotHeap(capacity: capacity)
        for entry in byDeadline.entries(upTo: .max) {
            let latest = latest(of: entry.slot, entry.instant)
            byLatest.insert(entry.slot, at: latest)
        }
    }

    private func latest(of slot: UInt32, _ deadline: UInt64) -> UInt64 {
        let (sum, overflow) = deadline.addingReportingOverflow(
            timer(in: slot).toleranceNanoseconds)
        return overflow ? .max : sum
    }

    @inline(__always) private func timer(in slot: UInt32) -> LoopTimer {
        timers[Int(slot)].takeUnretainedValue()
    }

    @inline(__always) private mutating func newSlot() -> UInt32 {
        if slotCount == capacity { grow() }
        defer { slotCount += 1 }
        return slotCount
    }

    private mutating func grow() {
        guard capacity < Self.most else {
            fatalError("a mode holds at most a billion timers")
        }
        let larger = capacity * 2
        byDeadline.grow(to: larger)
        if hasTolerance { byLatest.grow(to: larger) }
        let moved = UnsafeMutablePointer<Unmanaged<LoopTimer>>.allocate(capacity: Int(larger))
        moved.moveInitialize(from: timers, count: Int(slotCount))
        timers.deallocate()
        timers = moved
        capacity = larger
    }
}
