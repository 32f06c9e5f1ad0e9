// What the detector asks about another thread: how much CPU it used, and whether it runs, sleeps or is stopped.

internal import CStackCapture
internal import Glibc
package import StallModel

/// Reads the CPU time and the state of a thread of this process that may end at any moment.
package struct ThreadProbe: ~Copyable {
    private let thread: ThreadID
    private let stat: CInt
    private let schedule: CInt
    private let status: CInt

    /// Opens the thread's `/proc` entry. A probe of a thread that has ended, or of an unreadable `/proc`, answers nil.
    package init(_ thread: ThreadID) {
        self.thread = thread
        stat = stall_thread_open(thread.rawValue, ("stat" as StaticString).cString)
        schedule = stall_thread_open(thread.rawValue, ("schedstat" as StaticString).cString)
        status = stall_thread_open(thread.rawValue, ("status" as StaticString).cString)
    }

    deinit {
        stall_thread_close(stat)
        stall_thread_close(schedule)
        stall_thread_close(status)
    }

    /// The CPU time that the thread has used; nil when it has ended.
    ///
    /// **Cost:** 0.2 us. `pthread_getcpuclockid` would read the memory of a thread that may be gone.
    package mutating func cpuTime() -> Duration? {
        var time = timespec()
        guard clock_gettime(clockid_t(~thread.rawValue << 3 | 6), &time) == 0 else { return nil }
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// The state letter of proc(5): `R`, `S`, `D`, `T`, `t`, `Z` and others; nil when the thread has ended.
    package mutating func state() -> UInt8? { read(stat) { $0.state } }

    /// The time that the thread has been ready to run and waited for a CPU, over its life. The kernel books a wait when
    /// it is over. Nil when the thread has ended or the kernel does not count.
    ///
    /// **Source:** Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat", second number.
    package mutating func runDelay() -> Duration? {
        read(schedule) { $0.number(1).map { .nanoseconds($0) } }
    }

    /// Whether a debugger or another tracer is attached to the thread.
    package mutating func isTraced() -> Bool {
        (read(status) { $0.number(after: "TracerPid:") } ?? 0) != 0
    }

    private func read<Answer>(_ file: CInt, _ parse: (ProcText) -> Answer?) -> Answer? {
        guard file >= 0 else { return nil }
        return withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { buffer in
            let count = pread(file, buffer.baseAddress!, buffer.count, 0)
            guard count > 0 else { return nil }
            return parse(ProcText(UnsafeRawBufferPointer(rebasing: buffer[..<count])))
        }
    }
}
