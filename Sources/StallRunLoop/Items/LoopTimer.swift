// A handler that is called at an instant, once or again and again. Belongs to at most one loop.

public import StallModel
internal import CLinux
internal import Synchronization

/// Calls a handler on a loop's thread at an instant, and then at every interval if it repeats.
///
/// A repeating timer keeps its phase: when the loop is late, missed calls are skipped and the next one comes at the
/// first multiple of the interval that is still to come. While its handler runs, a timer is not called again.
///
/// **Thread safety:** any thread may use it; the handler runs on the loop's thread.
public final class LoopTimer: @unchecked Sendable {
    // The fields that removing touches come first, behind the object's header, then those that adding and moving touch
    // too: among many timers each cache line is a miss.

    /// Changed with its loop's lock held.
    let owner = ItemOwner()
    /// Where it is in the heaps of its modes; guarded by its loop's lock.
    @exclusivity(unchecked) var places = TimerPlaces()
    /// Its slot among the common items of its loop; guarded by the loop's lock.
    @exclusivity(unchecked) var commonSlot = ItemList<LoopTimer>.none
    /// When it fires next; guarded by its loop's lock, or by `owner` while it has no loop.
    @exclusivity(unchecked) var deadline: UInt64
    /// Its handler is running; guarded by its loop's lock.
    @exclusivity(unchecked) var isFiring = false
    /// Whether the app has named it; see ``ItemLabels``.
    let isLabelled = Atomic<Bool>(false)
    /// Guarded like `deadline`.
    @exclusivity(unchecked) var toleranceNanoseconds: UInt64 = 0
    /// 0 for a timer that is called once.
    let intervalNanoseconds: UInt64
    /// Nil once the timer was invalidated, and from the call on when it is called once. Guarded by its loop's lock;
    /// without one, touched by the thread that has invalidated it alone.
    @exclusivity(unchecked) var handler: ((LoopTimer) -> Void)?

    /// Makes a timer that fires first after `delay`, then every `interval` unless that is nil.
    ///
    /// - Parameters:
    ///   - delay: The time until it fires first; zero or less means at once.
    ///   - interval: The time between calls; nil, zero or less makes a timer that is called once.
    ///   - tolerance: How much later than requested it may fire, so that the loop can serve several timers with one
    ///     wake-up. At most half the interval of a repeating timer is used.
    ///   - handler: Called each time that it fires.
    public convenience init(
        after delay: Duration, every interval: Duration? = nil, tolerance: Duration = .zero,
        handler: sending @escaping (LoopTimer) -> Void
    ) {
        // Both are below the middle of the range, so that the sum has room; it ends where an instant plus a duration does.
        let sum = stall_monotonic_ns() + UInt64(max(0, delay.nanoseconds))
        self.init(min(sum, UInt64(Int64.max)), interval, tolerance, handler)
    }

    private init(
        _ deadline: UInt64, _ interval: Duration?, _ tolerance: Duration,
        _ handler: sending @escaping (LoopTimer) -> Void
    ) {
        self.handler = handler
        intervalNanoseconds = Self.repeating(interval)
        self.deadline = deadline
        if tolerance.attoseconds > 0 { toleranceNanoseconds = clamped(tolerance) }
    }

    /// Makes a timer that fires first at `instant`; an instant in the past means at once.
    public init(
        at instant: MonotonicInstant, every interval: Duration? = nil, tolerance: Duration = .zero,
        handler: sending @escaping (LoopTimer) -> Void
    ) {
        self.handler = handler
        intervalNanoseconds = Self.repeating(interval)
        deadline = Self.notBeforeNow(instant)
        if tolerance.attoseconds > 0 { toleranceNanoseconds = clamped(tolerance) }
    }

    /// The interval in nanoseconds, at least 1; 0 for none, or for one that does not make it repeat.
    private static func repeating(_ interval: Duration?) -> UInt64 {
        guard let interval, interval.attoseconds > 0 else { return 0 }
        return UInt64(max(1, interval.nanoseconds))
    }

    deinit {
        if isLabelled.load(ordering: .relaxed) { ItemLabels.set(nil, of: self) }
    }

    /// False once it was invalidated, or, when it does not repeat, was called.
    public var isValid: Bool { owner.isValid }

    /// The time between calls; nil for a timer that is called once.
    public var interval: Duration? {
        repeats ? .nanoseconds(Int64(clamping: intervalNanoseconds)) : nil
    }

    /// Whether it is called more than once.
    public var repeats: Bool { intervalNanoseconds != 0 }

    /// When it fires next. Set it to fire earlier or later; a repeating timer continues from there. An instant in the
    /// past means now. Set while the handler runs, it counts once that has returned: a handler that always sets an
    /// instant that has passed by then is called without pause. Setting it on another thread wakes the loop.
    public var nextFire: MonotonicInstant {
        get {
            var instant: UInt64 = 0
            withLock { instant = deadline }
            return MonotonicInstant(nanoseconds: instant)
        }
        set {
            let instant = Self.notBeforeNow(newValue)
            let isWaitedFor = withLock {
                deadline = instant
                if !isFiring { places.forEach { $0.pointee.move($1, to: instant) } }
            }
            guard isWaitedFor else { return }
            LivingLoops.with(owner.loopNumber) { loop in
                loop.wake.nudge()
                if !loop.isCurrent { loop.wakeUp() }
            }
        }
    }

    /// How much later than requested it may fire. Negative values count as zero, values above half the interval of a
    /// repeating timer as that half.
    public var tolerance: Duration {
        get {
            var nanoseconds: UInt64 = 0
            withLock { nanoseconds = toleranceNanoseconds }
            return .nanoseconds(Int64(clamping: nanoseconds))
        }
        set {
            let isWaitedFor = withLock {
                toleranceNanoseconds = clamped(newValue)
                places.forEach { $0.pointee.toleranceChanged($1, deadline: deadline) }
            }
            if isWaitedFor { LivingLoops.with(owner.loopNumber) { $0.wake.nudge() } }
        }
    }

    /// Removes it from its loop for good, and releases the handler: when it runs, as soon as it returns.
    public func invalidate() {
        var isDone = false
        while !isDone {
            switch owner.invalidateUnowned() {
            case .wasInvalid: return
            case .madeInvalid: isDone = true
            case .isOwned:
                LivingLoops.with(owner.loopNumber) { loop in
                    loop.lock.lock()
                    isDone = loop.invalidateLocked(self)
                    loop.lock.unlock()
                }
            }
        }
        // It is in no loop, and no loop takes it any more.
        handler = nil
    }

    /// Runs `body` with whatever guards the timer now. True when that was the lock of a loop that may sleep meanwhile: of another
    /// thread, or inside of another loop.
    @discardableResult
    @inline(__always) func withLock(_ body: () -> Void) -> Bool {
        while true {
            let number = owner.loopNumber
            var isWaitedFor: Bool?
            LivingLoops.with(number) { loop in
                loop.lock.lock()
                defer { loop.lock.unlock() }
                guard owner.loopNumber == number else { return }
                body()
                isWaitedFor = loop.wake.isEmbedded || !loop.isCurrent
            }
            if let isWaitedFor { return isWaitedFor }
            if owner.withoutOwner(body) != nil { return false }
        }
    }

    /// When a repeating timer is called next, seen from `now`: while its handler runs, the deadline may be that of the present
    /// call. With the lock of its loop.
    func nextCall(after now: UInt64) -> UInt64 {
        guard deadline <= now else { return deadline }
        return deadline + ((now - deadline) / intervalNanoseconds + 1) * intervalNanoseconds
    }

    /// The instant, or now if it has passed. Only for one that is near is the clock read that knows exactly.
    @inline(__always) private static func notBeforeNow(_ instant: MonotonicInstant) -> UInt64 {
        if instant.nanoseconds > stall_monotonic_coarse_ns() + 1_000_000_000 {
            return instant.nanoseconds
        }
        return max(instant.nanoseconds, stall_monotonic_ns())
    }

    private func clamped(_ tolerance: Duration) -> UInt64 {
        guard tolerance.attoseconds > 0 else { return 0 }
        let wanted = UInt64(tolerance.nanoseconds)
        return repeats ? min(wanted, intervalNanoseconds / 2) : wanted
    }
}

/// The heaps a timer is in, with its slot in each. Most timers are in one mode, which is kept inline. The heaps live as
/// long as their loop, which outlives a timer's stay in it.
struct TimerPlaces {
    typealias Heap = UnsafeMutablePointer<TimerHeap>

    private var others: [(heap: Heap, slot: UInt32)]?
    private var first: Heap?
    private var firstSlot: UInt32 = 0

    @inline(__always) var isEmpty: Bool { first == nil }

    func contains(_ heap: Heap) -> Bool {
        first == heap || others?.contains { $0.heap == heap } ?? false
    }

    @inline(__always) mutating func append(_ heap: Heap, _ slot: UInt32) {
        if first == nil {
            (first, firstSlot) = (heap, slot)
        } else {
            if others == nil { others = [] }
            others?.append((heap, slot))
        }
    }

    /// Where it is.
    var heaps: Set<Heap> {
        var heaps: Set<Heap> = []
        forEach { heap, _ in heaps.insert(heap) }
        return heaps
    }

    /// Takes the timer out of some heaps, in one pass.
    mutating func leave(_ timer: LoopTimer, where isLeft: (Heap) -> Bool) {
        var kept = TimerPlaces()
        forEach { heap, slot in
            if isLeft(heap) {
                heap.pointee.remove(slot, of: timer)
            } else {
                kept.append(heap, slot)
            }
        }
        self = kept
    }

    /// Returns the slot it had in the heap, nil when it was not there.
    mutating func remove(_ heap: Heap) -> UInt32? {
        if first == heap {
            defer {
                let next = others?.popLast()
                (first, firstSlot) = (next?.heap, next?.slot ?? 0)
            }
            return firstSlot
        }
        guard let index = others?.firstIndex(where: { $0.heap == heap }) else { return nil }
        return others?.remove(at: index).slot
    }

    mutating func removeAll() { self = TimerPlaces() }

    /// Takes the timer out of all heaps.
    @inline(__always) mutating func leave(_ timer: LoopTimer) {
        first?.pointee.remove(firstSlot, of: timer)
        if let others {
            for other in others { other.heap.pointee.remove(other.slot, of: timer) }
            self.others = nil
        }
        first = nil
    }

    @inline(__always) func forEach(_ body: (Heap, UInt32) -> Void) {
        guard let first else { return }
        body(first, firstSlot)
        guard let others else { return }
        for other in others { body(other.heap, other.slot) }
    }
}
