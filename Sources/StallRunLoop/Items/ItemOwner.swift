// The loop that an item belongs to, and whether it is still valid: both in one atomic word, so that claiming an item
// and invalidating it cannot miss each other. Loops are named by number; a number is never used again.

internal import Synchronization

/// The owner of an item that belongs to at most one loop.
struct ItemOwner: ~Copyable {
    private static let invalid: UInt64 = 1
    /// A thread changes the item while no loop owns it.
    private static let busy: UInt64 = 2
    /// Zero, or flags, or the number of a loop shifted by two.
    private let word = Atomic<UInt64>(0)

    var isValid: Bool { word.load(ordering: .acquiring) & Self.invalid == 0 }

    /// The number of the loop that owns it; 0 when none does.
    @inline(__always) var loopNumber: UInt64 { word.load(ordering: .acquiring) >> 2 }

    /// Makes `loop` the owner unless another one is; false then, or when the item is invalid.
    @inline(__always) func claim(for loop: UInt64) -> Bool {
        while true {
            let (done, current) = word.compareExchange(
                expected: 0, desired: loop << 2, ordering: .acquiringAndReleasing)
            if done || current == loop << 2 { return true }
            if current != Self.busy { return false }
        }
    }

    /// The item is in no mode any more.
    @inline(__always) func disclaim() { word.bitwiseAnd(Self.invalid, ordering: .releasing) }

    /// Makes the item invalid for good. Returns the number of its loop, 0 without one, nil when it was invalid before.
    @inline(__always) func invalidate() -> UInt64? {
        while true {
            let current = word.load(ordering: .relaxed)
            if current & Self.invalid != 0 { return nil }
            if current == Self.busy { continue }
            let (done, _) = word.weakCompareExchange(
                expected: current, desired: current | Self.invalid, ordering: .acquiringAndReleasing
            )
            if done { return current >> 2 }
        }
    }

    /// The result of `invalidateUnowned`.
    enum Unowned { case madeInvalid, wasInvalid, isOwned }

    /// Makes an item that no loop owns invalid.
    @inline(__always) func invalidateUnowned() -> Unowned {
        while true {
            let current = word.load(ordering: .acquiring)
            if current >> 2 != 0 { return .isOwned }
            if current & Self.invalid != 0 { return .wasInvalid }
            if current == Self.busy { continue }
            let (done, _) = word.weakCompareExchange(
                expected: 0, desired: Self.invalid, ordering: .acquiringAndReleasing)
            if done { return .madeInvalid }
        }
    }

    /// Makes an item invalid that is in no mode any more. With the lock of the loop that owns it held: no other
    /// code changes the word of an owned item that is invalidated in no other way.
    @inline(__always) func invalidateOwned() { word.store(Self.invalid, ordering: .releasing) }

    /// Runs `body` while no loop can claim the item; nil when a loop owns it.
    func withoutOwner<Result>(_ body: () -> Result) -> Result? {
        while true {
            let current = word.load(ordering: .relaxed)
            if current >> 2 != 0 { return nil }
            if current & Self.busy != 0 { continue }
            let (done, _) = word.weakCompareExchange(
                expected: current, desired: current | Self.busy, ordering: .acquiring)
            guard done else { continue }
            defer { word.bitwiseAnd(~Self.busy, ordering: .releasing) }
            return body()
        }
    }
}

/// All loops whose thread lives, by number.
enum LivingLoops {
    private static let numbers = Atomic<UInt64>(0)
    static let loops = Locked<[UInt64: Unmanaged<EventRunLoop>]>([:])
    /// See ``ForkHandlers``.
    static let forkHolder = ForkHolder()

    static func newNumber() -> UInt64 { numbers.wrappingAdd(1, ordering: .relaxed).newValue }

    static func add(_ loop: EventRunLoop) {
        loops.withLock { $0[loop.number] = .passUnretained(loop) }
    }

    /// Called before the loop is released, so a thread that found it here has a reference of its own.
    static func remove(_ loop: EventRunLoop) {
        _ = loops.withLock { $0.removeValue(forKey: loop.number) }
    }

    /// Runs `body` with the loop of that number, if its thread lives. The calling thread's own is found without a lock
    /// and used without a reference: it cannot go away meanwhile.
    @inline(__always) static func with(_ number: UInt64, _ body: (EventRunLoop) -> Void) {
        guard number != 0 else { return }
        if let own = LoopOfThread.ifAny, own._withUnsafeGuaranteedRef({ $0.number == number }) {
            own._withUnsafeGuaranteedRef(body)
        } else if let loop = find(number) {
            body(loop)
        }
    }

    @inline(never) private static func find(_ number: UInt64) -> EventRunLoop? {
        loops.withLock { $0[number]?.takeUnretainedValue() }
    }
}
