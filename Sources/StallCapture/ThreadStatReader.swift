// Reads another thread's counters and state for the detector: CPU time, run delay, running, sleeping or stopped.

internal import CLinux
internal import Glibc
package import StallModel

/// Reads the CPU time and state of a thread of this process, which may end at any moment.
package struct ThreadStatReader: ~Copyable {
    private let thread: ThreadID
    private var files = stall_thread_files()

    /// Opens the thread's `/proc` entry. If the thread has ended or `/proc` is unreadable, all methods return nil.
    package init(_ thread: ThreadID) {
        self.thread = thread
        stall_thread_files_begin(&files, thread.rawValue)
    }

    /// Shares the files that the thread's registration keeps open, if there are any.
    package init(_ thread: RegisteredThread) {
        self.thread = thread.id
        stall_thread_files_share(&files, thread.keptFiles, thread.id.rawValue)
    }

    deinit {
        var files = files
        stall_thread_files_close(&files)
    }

    /// The thread's CPU time; nil if it has ended.
    ///
    /// **Cost:** 0.2 us. `pthread_getcpuclockid` would read the memory of a thread that may have ended.
    package mutating func cpuTime() -> Duration? {
        var used_ns: UInt64 = 0
        guard stall_thread_cpu_ns(thread.rawValue, &used_ns) == 0 else { return nil }
        return .nanoseconds(used_ns)
    }

    /// The state letter of proc(5): `R`, `S`, `D`, `T`, `t`, `Z` and others; nil if the thread has ended.
    package mutating func state() -> UInt8? {
        var state = stall_thread_state()
        return stall_thread_read_state(&files, &state) == 0 ? state.letter : nil
    }

    /// State, CPU time, and whether the thread is runnable without a CPU: the CPU clock of a running thread advances
    /// between two readings.
    package mutating func scheduling() -> (state: UInt8?, cpuTime: Duration?, waitsForCPU: Bool) {
        let before = cpuTime()
        let state = state()
        let now = cpuTime()
        return (state, now, state == UInt8(ascii: "R") && before == now)
    }

    /// The total time that the thread has been runnable without a CPU. The kernel adds a wait when it is over. Nil if
    /// the thread has ended or the kernel does not count it.
    ///
    /// **Source:** Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat", second number.
    package mutating func runDelay() -> Duration? {
        var schedule = stall_thread_schedule()
        return stall_thread_read_schedule(&files, &schedule) == 0
            ? .nanoseconds(schedule.run_delay_ns) : nil
    }

    /// Whether a debugger or another tracer is attached to the thread.
    package mutating func isTraced() -> Bool {
        var status = stall_thread_status()
        return stall_thread_read_status(&files, &status) == 0 && status.tracer != 0
    }
}
