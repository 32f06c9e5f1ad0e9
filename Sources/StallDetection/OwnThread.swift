// Reads what the kernel has counted of the thread that asks.

internal import CLinux
internal import Glibc
internal import StallModel

/// The counters of the calling thread, kept open. For the thread that made it.
struct OwnThread: ~Copyable {
    private let schedule = stall_task_open(stall_gettid(), "schedstat")

    deinit { stall_descriptor_close(schedule) }

    /// **Cost:** two system calls, 1 us.
    func counters() -> OwnCounters {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return OwnCounters(
            cpuTime: .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec),
            runDelay: readProcNumber(schedule, 1).map { .nanoseconds($0) })
    }
}

/// A number of a small file of `/proc`, which is read from its beginning; nil when that fails.
///
/// **Source:** Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat": time on a CPU, time that it waited for
/// one, and how often it got one.
func readProcNumber(_ file: CInt, _ index: Int) -> Int64? {
    guard file >= 0 else { return nil }
    return withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { buffer in
        let count = pread(file, buffer.baseAddress!, buffer.count, 0)
        return count > 0
            ? ProcText(UnsafeRawBufferPointer(rebasing: buffer[..<count])).number(index) : nil
    }
}

/// The state letter of a thread's `stat`; nil when it cannot be read.
func readProcState(_ file: CInt) -> UInt8? {
    guard file >= 0 else { return nil }
    return withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { buffer in
        let count = pread(file, buffer.baseAddress!, buffer.count, 0)
        return count > 0 ? ProcText(UnsafeRawBufferPointer(rebasing: buffer[..<count])).state : nil
    }
}
