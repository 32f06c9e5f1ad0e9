// Reads what the kernel has counted of the thread that asks.

internal import CLinux
internal import Glibc
internal import StallModel

/// The counters of the calling thread, kept open. For the thread that made it.
struct OwnThread: ~Copyable {
    private let schedule = open(
        "/proc/self/task/\(stall_gettid())/schedstat", O_RDONLY | O_CLOEXEC)

    deinit { if schedule >= 0 { close(schedule) } }

    /// **Cost:** two system calls, 1 us.
    func counters() -> OwnCounters {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return OwnCounters(
            cpuTime: .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec),
            runDelay: readProcFile(schedule) { schedNumber(1, of: $0) }.map { .nanoseconds($0) })
    }
}

/// Reads a small file of `/proc` from its beginning; nil when that fails.
func readProcFile<Answer>(
    _ file: CInt, _ parse: (Slice<UnsafeMutableRawBufferPointer>) -> Answer?
) -> Answer? {
    guard file >= 0 else { return nil }
    return withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { buffer in
        let count = pread(file, buffer.baseAddress!, buffer.count, 0)
        return count > 0 ? parse(buffer.prefix(count)) : nil
    }
}

/// A number of `/proc/PID/schedstat`: time on a CPU, time that it waited for one, and how often it got one.
///
/// **Source:** Documentation/scheduler/sched-stats.rst, "/proc/<pid>/schedstat".
func schedNumber(_ index: Int, of text: Slice<UnsafeMutableRawBufferPointer>) -> Int64? {
    let numbers = text.split { $0 <= UInt8(ascii: " ") }
    guard numbers.count > index else { return nil }
    return Int64(String(decoding: numbers[index], as: UTF8.self))
}
