// How other threads reach a sleeping loop: one atomic word, and an eventfd that is written only while it sleeps.
//
//     woken      a wake-up came: the next wait does not sleep
//     stopping   the same, for a stop, which is meant for the innermost run alone
//     sleeping   the loop is in the kernel, or on its way there
//
// Wake-ups count from the beginning of an iteration to the end of its wait. Those that come later are marked like all
// others, and the next iteration drops the mark when it begins, as CFRunLoop does: the loop is about to look at
// everything anyway. So the loop itself changes the word once an iteration, unless it sleeps.
//
// But if a nested run drops or takes a wake-up and then ends, the outer run may fall asleep over the block that
// another thread has just posted. CFRunLoop does; here the outer run gets every wake-up that came during a nested one.

internal import CLinux
internal import Glibc
internal import Synchronization

struct WakeSignal: ~Copyable {
    private static let woken: UInt32 = 1
    private static let stopping: UInt32 = 2
    private static let sleeping: UInt32 = 4
    /// Another loop sleeps for this one: see EventRunLoop+Embedding.swift.
    private static let embedded: UInt32 = 8

    /// Edge-triggered in every poller of the loop and never read: each write is a new edge. -1 when the process had
    /// none left: then the loop looks at the word every few milliseconds.
    var descriptor: CInt { eventfd.load(ordering: .relaxed) }
    private let eventfd: Atomic<CInt>
    /// The thread that the descriptor is marked for.
    private let owner: Atomic<pid_t>
    private let state = Atomic<UInt32>(0)

    init(thread: pid_t) {
        eventfd = Atomic(stall_descriptor_own_for(stall_eventfd_create(), thread))
        owner = Atomic(thread)
    }

    deinit { close() }

    /// Closes the descriptor, if the number is still that.
    func close() { stall_descriptor_close_for(descriptor, owner.load(ordering: .relaxed)) }

    /// Takes a new descriptor. The old number is left alone: the app may own it by now.
    func renew(thread: pid_t) {
        owner.store(thread, ordering: .relaxed)
        let made = stall_descriptor_own_for(stall_eventfd_create(), thread)
        eventfd.store(made, ordering: .relaxed)
    }

    /// Whether it has a descriptor, and the number still means that.
    var isOwn: Bool { stall_descriptor_is_for(descriptor, owner.load(ordering: .relaxed)) }

    /// Whether the number belongs to another file by now.
    var isLost: Bool {
        let descriptor = descriptor
        return descriptor >= 0
            && stall_descriptor_is_lost(descriptor, owner.load(ordering: .relaxed))
    }

    /// Ends the sleep, or keeps the loop from falling asleep in this iteration.
    func wakeUp() {
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        wakeUpAfterPost()
    }

    /// The same after a sequentially consistent change of what the loop looks at. Ordered with `dropMarks`: either that
    /// leaves this mark, or the loop sees what was posted before.
    @inline(__always) func wakeUpAfterPost() { mark(Self.woken) }

    /// Ends the sleep for a stop.
    func wakeToStop() { mark(Self.stopping) }

    @inline(__always) private func mark(_ mark: UInt32) {
        var current = state.load(ordering: .sequentiallyConsistent)
        while current & mark == 0 {
            let (done, now) = state.weakCompareExchange(
                expected: current, desired: current | mark, ordering: .acquiringAndReleasing)
            if done {
                if current & (Self.sleeping | Self.embedded) != 0 { write() }
                return
            }
            current = now
        }
    }

    private func write() {
        // The number may belong to a file of the app by now, or of another loop. Then the loop renews its own when it wakes
        // up, and looks whether it was marked meanwhile: ordered so that it sees the mark, or this the new number.
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        let descriptor = descriptor
        if descriptor >= 0, !isLost { stall_eventfd_write(descriptor) }
    }

    /// Makes a sleeping loop look at its timers again. It does not count as a wake-up.
    func nudge() {
        if state.load(ordering: .acquiring) & (Self.sleeping | Self.embedded) != 0 { write() }
    }

    /// From now on each wake-up is written, also while the loop does not run; one that came before is written now.
    func embed() {
        guard !isEmbedded else { return }
        state.bitwiseOr(Self.embedded, ordering: .sequentiallyConsistent)
        dropMarks()
        write()
    }

    var isEmbedded: Bool { state.load(ordering: .relaxed) & Self.embedded != 0 }

    var isSleeping: Bool { state.load(ordering: .acquiring) & Self.sleeping != 0 }

    // The rest is for the loop's own thread.

    /// Forgets what came so far: the loop looks at everything after this.
    func dropMarks() {
        state.bitwiseAnd(~(Self.woken | Self.stopping), ordering: .sequentiallyConsistent)
    }

    /// Says that the loop is about to sleep. False when something is pending; then it is not.
    func prepareToSleep() -> Bool {
        let old = state.bitwiseOr(Self.sleeping, ordering: .sequentiallyConsistent).oldValue
        guard old & (Self.woken | Self.stopping) != 0 else { return true }
        state.bitwiseAnd(~Self.sleeping, ordering: .releasing)
        return false
    }

    func endSleep() { state.bitwiseAnd(~Self.sleeping, ordering: .acquiringAndReleasing) }

    /// Whether something forbids sleeping.
    var isPending: Bool {
        state.load(ordering: .acquiring) & (Self.woken | Self.stopping) != 0
    }

    /// The same after `renew`: see `write`.
    var isPendingAfterRenewal: Bool {
        atomicMemoryFence(ordering: .sequentiallyConsistent)
        return isPending
    }

    /// Whether a wake-up is pending.
    var isWoken: Bool { state.load(ordering: .acquiring) & Self.woken != 0 }

    /// Takes what is pending. Returns whether a wake-up was, not only a stop.
    func takePending() -> Bool {
        guard isPending else { return false }
        let old = state.bitwiseAnd(
            ~(Self.woken | Self.stopping), ordering: .acquiringAndReleasing
        ).oldValue
        return old & Self.woken != 0
    }

    /// The outermost run ends. Returns whether a wake-up was pending.
    @discardableResult func reset() -> Bool {
        let old = state.bitwiseAnd(Self.embedded, ordering: .acquiringAndReleasing).oldValue
        return old & Self.woken != 0
    }

    /// A nested run ends. Its stop is over; the outer one is woken if `isWoken`.
    func restore(isWoken: Bool) {
        state.bitwiseAnd(~Self.stopping, ordering: .relaxed)
        if isWoken { state.bitwiseOr(Self.woken, ordering: .acquiringAndReleasing) }
    }
}
