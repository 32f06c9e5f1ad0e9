// How other threads reach a sleeping loop: one atomic word, and an eventfd that is written only while it sleeps.
//
//     accepting   wake-ups count: from the beginning of an iteration to the end of its wait
//     pending     a wake-up came: the next wait does not sleep
//     stopping    the same, for a stop, which is meant for the innermost run alone
//     late        a wake-up came when they do not count
//     sleeping    the loop is in the kernel, or on its way there
//
// Outside of `accepting` a wake-up is dropped, as CFRunLoop does: the loop is about to look at everything anyway. But if
// a nested run drops or takes it and then ends, the outer run may fall asleep over the block that somebody has just
// posted. CFRunLoop does; here the outer run gets every wake-up that came during a nested one.

internal import CLinux
internal import Glibc
internal import Synchronization

struct WakeSignal: ~Copyable {
    private static let accepting: UInt32 = 1
    private static let pending: UInt32 = 2
    private static let stopping: UInt32 = 4
    private static let late: UInt32 = 8
    private static let sleeping: UInt32 = 16

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
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        wakeUpAfterPost()
    }

    /// The same after a sequentially consistent change of what the loop looks at. Ordered with `accept`: either this
    /// sees `accepting`, or the loop sees what was posted before.
    @inline(__always) func wakeUpAfterPost() {
        var current = state.load(ordering: .sequentiallyConsistent)
        while current & (Self.pending | Self.late) == 0 {
            let mark = current & Self.accepting != 0 ? Self.pending : Self.late
            if set(mark, &current) { return }
        }
    }

    /// Ends the sleep for a stop.
    func wakeToStop() {
        var current = state.load(ordering: .relaxed)
        while current & Self.accepting != 0, current & Self.stopping == 0 {
            if set(Self.stopping, &current) { return }
        }
    }

    @inline(__always) private func set(_ mark: UInt32, _ current: inout UInt32) -> Bool {
        let (done, now) = state.weakCompareExchange(
            expected: current, desired: current | mark, ordering: .acquiringAndReleasing)
        if done && current & Self.sleeping != 0 { stall_eventfd_write(descriptor) }
        current = now
        return done
    }

    /// Makes a sleeping loop look at its timers again. It does not count as a wake-up.
    func nudge() {
        if state.load(ordering: .acquiring) & Self.sleeping != 0 { stall_eventfd_write(descriptor) }
    }

    var isSleeping: Bool { state.load(ordering: .acquiring) & Self.sleeping != 0 }

    // The rest is for the loop's own thread.

    /// An iteration begins: wake-ups count.
    func accept() {
        let old = state.bitwiseOr(Self.accepting, ordering: .sequentiallyConsistent).oldValue
        if old & Self.late != 0 { state.bitwiseAnd(~Self.late, ordering: .acquiringAndReleasing) }
    }

    /// Callouts after the wait: wake-ups do not count.
    func ignore() {
        let old = state.load(ordering: .relaxed)
        if old & Self.accepting != 0 { state.bitwiseAnd(~Self.accepting, ordering: .relaxed) }
    }

    /// Says that the loop is about to sleep. False when something is pending; then it is not.
    func prepareToSleep() -> Bool {
        let old = state.bitwiseOr(Self.sleeping, ordering: .sequentiallyConsistent).oldValue
        guard old & (Self.pending | Self.stopping) != 0 else { return true }
        state.bitwiseAnd(~Self.sleeping, ordering: .releasing)
        return false
    }

    func endSleep() { state.bitwiseAnd(~Self.sleeping, ordering: .acquiringAndReleasing) }

    /// Whether something forbids sleeping.
    var isPending: Bool {
        state.load(ordering: .acquiring) & (Self.pending | Self.stopping) != 0
    }

    /// Takes what is pending. Returns whether a wake-up was, not only a stop.
    func takePending() -> Bool {
        guard isPending else { return false }
        let old = state.bitwiseAnd(
            ~(Self.pending | Self.stopping), ordering: .acquiringAndReleasing
        ).oldValue
        return old & Self.pending != 0
    }

    /// Whether wake-ups count now.
    var isAccepting: Bool { state.load(ordering: .relaxed) & Self.accepting != 0 }

    /// The outermost run ends.
    func reset() { state.store(0, ordering: .releasing) }

    /// A nested run ends: back to the state of the outer one. `tookWakeUp` says that the nested one has taken a wake-up.
    /// Returns whether any came meanwhile.
    func restore(accepting: Bool, tookWakeUp: Bool) -> Bool {
        let came = tookWakeUp || state.load(ordering: .acquiring) & (Self.late | Self.pending) != 0
        state.bitwiseAnd(~Self.stopping, ordering: .relaxed)
        if accepting { accept() } else { ignore() }
        if came {
            state.bitwiseOr(accepting ? Self.pending : Self.late, ordering: .acquiringAndReleasing)
        }
        return came
    }
}
