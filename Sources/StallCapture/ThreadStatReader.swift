// What the detector asks about another thread: how much CPU it used, and whether it runs, sleeps or is stopped.

internal import CLinux
internal import Glibc
package import StallModel

/// Reads the CPU time and the state of a thread of this process that may end at any moment.
package struct ThreadStatReader: ~Copyable {
    private let thread: ThreadID
    private var files = stall_thread_files()

    /// Opens the thread's `/proc` entry. A probe of a thread that has ended, or of an unreadable `/proc`, answers nil.
    package init(_ thread: ThreadID) {
        self.thread = thread
        stall_thread_files_begin(&files, thread.rawValue)
    }

    /// Reads what the thread's registration keeps open, if that is so.
    package init(_ thread: RegisteredThread) {
        self.thread = thread.id
        stall_thread_files_share(&files, thread.keptFiles, thread.id.rawValue)
    }

    deinit {
        var files = files
        stall_thread_files_close(&files)
    }

    /// The CPU time that the thread has used; nil when it has ended.
    ///
    /// **Cost:** 0.2 us. `pthread_getcpuclockid` would read the memory of a thread that may be gone.
    package mutating func cpuTime() -> Duration? {
        var used_ns: UInt64 = 0
        guard stall_thread_cpu_ns(thread.rawValue, &used_ns) == 0 else { return nil }
        return .nanoseconds(used_ns)
    }

    /// The state letter of proc(5): `R`, `S`, `D`, `T`, `t`, `Z` and others; nil when the thread has ended.
    package mutating func state() -> UInt8? {
        var state = stall_thread_state()
        return stall_thread_read_state(&files, &state) == 0 ? state.letter : nil
    }

    /// Its state and its CPU time, and whether it is ready to run but has no CPU: the CPU clock of a thread that runs
    /// moves between two readings.
    package mutating func scheduling() -> (state: UInt8?, cpuTime: Duration?, waitsForCPU: Bool) {
        let before = cpuTime()
        let state = state()
        let now = cpuTime()
        return (state, now, state == UInt8(ascii: "R") && before == now)
    }

    /// The time that the thread has been ready to run and waited for a CPU, over its life. The kernel books a wait when
    /// it is over. Nil when the thread has ended or the kernel does not count.
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
