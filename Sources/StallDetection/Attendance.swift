// For how long the watchdog itself did not run although it should have. It waits for nothing but its own futex, so when it
// comes late, either it waited for a CPU, which the kernel counts, or nothing of the process ran: it was stopped, frozen,
// throttled, or its machine was paused.

internal import CLinux
internal import Glibc
internal import StallModel

/// The watchdog's account of its own presence. For its own thread.
struct Attendance: ~Copyable {
    private let schedule: CInt
    /// What was missed in all up to the last awakening.
    private var missed = Duration.zero
    /// The beginning of what is accounted for now, and this thread's counters then.
    private var since = MonotonicInstant(nanoseconds: 0)
    private var cpuTime = Duration.zero
    private var runDelay: Duration?
    /// Time in which the thread waited on purpose.
    private var excused = Duration.zero

    /// Less than this says nothing.
    private static let tolerance = Duration.milliseconds(1)

    init() {
        schedule = open("/proc/self/task/\(stall_gettid())/schedstat", O_RDONLY | O_CLOEXEC)
    }

    deinit { if schedule >= 0 { close(schedule) } }

    /// How long, in all, nothing of the process can have run.
    func absence(by now: MonotonicInstant) -> Duration { missed + unexplained(until: now) }

    /// The thread waited for something else meanwhile, and was there.
    mutating func excuse(_ time: Duration) { excused += time }

    mutating func goToSleep(at now: MonotonicInstant) { settle(at: now) }

    /// Notes that it slept as it wanted to: until `due` or until it was called, whichever came first.
    mutating func wake(
        expectedAt due: MonotonicInstant?, called: MonotonicInstant, at now: MonotonicInstant
    ) {
        var end = due.map { min($0, now) } ?? now
        if called > since { end = min(end, called) }
        if end > since { excuse(end - since) }
        settle(at: now)
    }

    private mutating func settle(at now: MonotonicInstant) {
        missed += unexplained(until: now)
        since = now
        excused = .zero
        cpuTime = readCPUTime()
        runDelay = readRunDelay()
    }

    /// The time since `since` in which this thread neither ran, nor waited for a CPU, nor waited on purpose.
    private func unexplained(until now: MonotonicInstant) -> Duration {
        let rest = now - since - excused
        guard rest > Self.tolerance, since.nanoseconds > 0 else { return .zero }
        var explained = readCPUTime() - cpuTime
        if let before = runDelay, let after = readRunDelay() { explained += after - before }
        let unexplained = rest - explained
        return unexplained > Self.tolerance ? unexplained : .zero
    }

    private func readCPUTime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// The time that this thread has waited for a CPU; nil where the kernel does not count.
    private func readRunDelay() -> Duration? {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 64) { text in
            let count = schedule < 0 ? -1 : pread(schedule, text.baseAddress!, text.count, 0)
            guard count > 0 else { return nil }
            let numbers = text[..<count].split(separator: UInt8(ascii: " "))
            guard numbers.count >= 2 else { return nil }
            return Int64(String(decoding: numbers[1], as: UTF8.self)).map { .nanoseconds($0) }
        }
    }
}
