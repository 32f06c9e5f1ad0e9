// Reads the kernel's counters of the calling thread.

internal import CLinux
internal import Glibc
internal import StallModel

/// The counters of the calling thread. Keeps no descriptor. Confined to the thread that created it.
struct SchedulerStatistics: ~Copyable {
    private var files = stall_thread_files()

    init() { stall_thread_files_visit(&files, stall_gettid()) }

    deinit {
        var files = files
        stall_thread_files_close(&files)
    }

    /// **Cost:** a file of `/proc` opened and read, 5 us.
    mutating func counters() -> OwnCounters {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        var schedule = stall_thread_schedule()
        let isKnown = stall_thread_read_schedule(&files, &schedule) == 0
        return OwnCounters(
            cpuTime: .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec),
            runDelay: isKnown ? .nanoseconds(schedule.run_delay_ns) : nil)
    }
}
