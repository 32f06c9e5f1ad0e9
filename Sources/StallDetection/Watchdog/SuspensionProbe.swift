// A thread that sleeps for ever. Whatever stops a process wakes up each of its threads to do so: SIGSTOP, a debugger
// that attaches to all, a control group's freezer. Nothing else wakes this one, so while it sleeps on, nothing has
// stopped the process. The watchdog cannot tell by itself: when it waits for a CPU, a stop may come and go without
// reaching it.

internal import CLinux
internal import Glibc
internal import StallModel
internal import Synchronization

/// The thread that is there to be disturbed.
final class SuspensionProbe: Sendable {
    /// It reads from an eventfd: a futex would let a freezer stop it in its sleep.
    private let end: CInt
    private let id = Atomic<Int32>(0)
    private let thread = Mutex<AgentThread?>(nil)

    /// Starts the thread; nil when the system gives none.
    init?() {
        end = eventfd(0, CInt(EFD_CLOEXEC))
        guard end >= 0,
            let new = AgentThread(
                name: "stall-sentinel", stackBytes: 1 << 16, { [self] in sleep() })
        else { return nil }
        thread.withLock { $0 = new }
    }

    deinit { stall_descriptor_close(end) }

    private func sleep() {
        id.store(stall_gettid(), ordering: .releasing)
        var count: UInt64 = 0
        while read(end, &count, 8) < 0 && errno == EINTR {}
    }

    /// Ends the thread. Where the app has closed its descriptor, the thread cannot be woken: it is left to sleep.
    func stop() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        var one: UInt64 = 1
        // The number may be a file of the app's by now, which must not be written.
        let isWoken = stall_descriptor_is_kernels(end) && write(end, &one, 8) == 8
        if !isWoken || !thread.join(within: .seconds(1)) { thread.detach() }
    }

    /// Its files, for the thread that watches it; nil until it sleeps.
    func files() -> Files? {
        let id = id.load(ordering: .acquiring)
        return id == 0 ? nil : Files(thread: id)
    }

    /// What the kernel says of the suspension probe.
    struct Files: ~Copyable {
        private var files = stall_thread_files()
        private var turns: UInt64?

        init(thread: Int32) { stall_thread_files_begin(&files, thread) }

        deinit {
            var files = files
            stall_thread_files_close(&files)
        }

        /// Whether it has been on a CPU since the last call, or is on its way to one.
        ///
        /// **Cost:** two reads from `/proc`, 5 us.
        mutating func wasDisturbed() -> Bool {
            let before = turns
            // Awake first, then its turns: one that falls asleep in between has had one.
            var (state, schedule) = (stall_thread_state(), stall_thread_schedule())
            let isAwake =
                stall_thread_read_state(&files, &state) == 0 && state.letter != UInt8(ascii: "S")
            turns = stall_thread_read_schedule(&files, &schedule) == 0 ? schedule.slices : nil
            return isAwake || before != nil && turns != before
        }
    }
}
