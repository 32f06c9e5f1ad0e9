// How other threads reach a sleeping loop: one atomic word, and an eventfd that is written only while it sleeps.
//
//     accepting   wake-ups count: from the beginning of an iteration to the end of its wait
//     pending     a wake-up came: the next wait does not sleep
//     sleeping    the loop is in the kernel, or on its way there
//
// Outside of `accepting` a wake-up is dropped, as CFRunLoop does: the loop is about to look at everything anyway.

internal import CLinux
internal import Glibc
internal import Synchronization

struct WakeSignal: ~Copyable {
    private static let accepting: UInt32 = 1
    private static let pending: UInt32 = 2
    private static let sleeping: UInt32 = 4

    /// Edge-triggered in every poller of the loop and never read: each write is a new edge.
    let descriptor: CInt
    private let state = Atomic<UInt32>(0)

    init() {
        descriptor = stall_eventfd_create()
        precondition(descriptor >= 0, "a run loop needs an eventfd: errno \(errno)")
    }

    deinit { close(descriptor) }

    /// Ends the sleep, or keeps the loop from falling asleep in this iteration.
    func wakeUp() {
        // Ordered with the exchange in `accept`: either this sees `accepting`, or the loop sees what was posted before.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        var current = state.load(ordering: .relaxed)
        while current & Self.accepting != 0, current & Self.pending == 0 {
            let (done, now) = state.weakCompareExchange(
                expected: current, desired: current | Self.pending, ordering: .acquiringAndReleasing
            )
            if done {
                if current & Self.sleeping != 0 { stall_eventfd_write(descriptor) }
                return
            }
            current = now
        }
    }

    /// Makes a sleeping loop look at its timers again. It does not count as a wake-up.
    func nudge() {
        if state.load(ordering: .acquiring) & Self.sleeping != 0 { stall_eventfd_write(descriptor) }
    }

    var isSleeping: Bool { state.load(ordering: .acquiring) & Self.sleeping != 0 }

    // The rest is for the loop's own thread.

    /// An iteration begins: wake-ups count.
    func accept() { state.bitwiseOr(Self.accepting, ordering: .sequentiallyConsistent) }

    /// Callouts after the wait: wake-ups do not count.
    func ignore() {
        let old = state.load(ordering: .relaxed)
        if old & Self.accepting != 0 { state.bitwiseAnd(~Self.accepting, ordering: .relaxed) }
    }

    /// Says that the loop is about to sleep; false when a wake-up is pending, which is thereby taken.
    func prepareToSleep() -> Bool {
        let old = state.bitwiseOr(Self.sleeping, ordering: .sequentiallyConsistent).oldValue
        guard old & Self.pending != 0 else { return true }
        endSleep()
        return false
    }

    /// The sleep is over. Returns whether a wake-up came; takes it.
    @discardableResult
    func endSleep() -> Bool {
        let old = state.bitwiseAnd(Self.accepting, ordering: .acquiringAndReleasing).oldValue
        return old & Self.pending != 0
    }

    /// Takes a pending wake-up without sleeping.
    func takePending() {
        if state.load(ordering: .relaxed) & Self.pending != 0 {
            state.bitwiseAnd(~Self.pending, ordering: .acquiringAndReleasing)
        }
    }

    /// Whether a pending wake-up forbids sleeping.
    var isPending: Bool { state.load(ordering: .acquiring) & Self.pending != 0 }

    /// Whether wake-ups count now.
    var isAccepting: Bool { state.load(ordering: .relaxed) & Self.accepting != 0 }

    /// A run ends: back to the state of the outer one, which keeps a pending wake-up, or to none.
    func restore(accepting: Bool, isNested: Bool) {
        if accepting { accept() } else { ignore() }
        if !isNested { takePending() }
    }
}
