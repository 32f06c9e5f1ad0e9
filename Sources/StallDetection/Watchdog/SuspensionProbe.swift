// A thread that sleeps forever. Whatever stops a process wakes each of its threads to do so: SIGSTOP, a debugger that
// attaches to all threads, a control group's freezer. Nothing else wakes this one, so while it sleeps, nothing has
// stopped the process. The watchdog cannot observe that itself: a stop may come and go unnoticed while it waits for a
// CPU.

internal import CLinux
internal import Glibc
internal import StallModel
internal import Synchronization

/// Blocks in read(2); a wake-up means that the process was stopped.
final class SuspensionProbe: Sendable {
    /// An eventfd, because a freezer can stop a thread that waits on a futex without waking it.
    private let end: CInt
    private let id = Atomic<Int32>(0)
    private let thread = Mutex<AgentThread?>(nil)

    /// Starts the thread; nil if the system refuses.
    init?() {
        end = stall_descriptor_own(eventfd(0, CInt(EFD_CLOEXEC)))
        guard end >= 0,
            let new = AgentThread(
                name: "stall-sentinel", stackBytes: 1 << 16, { [self] in sleep() })
        else { return nil }
        thread.withLock { $0 = new }
    }

    deinit { stall_descriptor_close(end) }

    private func sleep() {
        id.store(stall_gettid(), ordering: .releasing)
        // A read that a stop interrupts is made again, by number: from a table of its own, it is never of the app's file.
        stall_descriptor_keep_only(end)
        var count: UInt64 = 0
        while read(end, &count, 8) < 0 && errno == EINTR {}
    }

    /// Ends the thread. If the app has closed its descriptor, the thread cannot be woken and stays asleep.
    func stop() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        var one: UInt64 = 1
        // The number may belong to a file of the app by now, which must not be written.
        let isWoken = stall_descriptor_is_own(end) && write(end, &one, 8) == 8
        if !isWoken || !thread.join(within: .seconds(1)) { thread.detach() }
    }

    /// The thread's files, for the watchdog; nil until the thread runs.
    func files() -> Files? {
        let id = id.load(ordering: .acquiring)
        return id == 0 ? nil : Files(thread: id)
    }

    /// The kernel's counters of the suspension probe. Keeps no descriptor.
    struct Files: ~Copyable {
        private var files = stall_thread_files()
        private let thread: Int32
        private var runCount: UInt64?
        private var used_ns: UInt64 = 0
        private var wasRead = false

        init(thread: Int32) {
            self.thread = thread
            stall_thread_files_visit(&files, thread)
        }

        deinit {
            var files = files
            stall_thread_files_close(&files)
        }

        /// Whether the thread may have been on a CPU since the last call, or is about to be. The first call has nothing
        /// to compare with.
        ///
        /// **Cost:** two files of `/proc` opened and read, 13 us.
        mutating func wasInterrupted() -> Bool {
            defer { wasRead = true }
            let before = (runCount: runCount, used_ns: used_ns)
            // State before counters: a thread that falls asleep in between has run, so its count has changed.
            var (state, schedule) = (stall_thread_state(), stall_thread_schedule())
            let isAwake =
                stall_thread_read_state(&files, &state) == 0 && state.letter != UInt8(ascii: "S")
            runCount = stall_thread_read_schedule(&files, &schedule) == 0 ? schedule.slices : nil
            if stall_thread_cpu_ns(thread, &used_ns) != 0 { used_ns = before.used_ns }
            // No file can be opened without a free descriptor or in a sandbox. The CPU clock then has to suffice: a
            // virtual machine may subtract a short run from it as stolen.
            let hasRun =
                if let runs = before.runCount, let runCount {
                    runCount != runs
                } else {
                    before.used_ns != 0 && used_ns != before.used_ns
                }
            return isAwake || hasRun || !wasRead
        }
    }
}
