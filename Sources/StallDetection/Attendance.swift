// For how long the watchdog itself did not run although it should have. It waits for nothing but its own futex, so when it
// comes late, either it waited for a CPU, which the kernel counts, or nothing of the process ran: it was stopped, frozen,
// throttled, or its machine was paused.

internal import CLinux
internal import Glibc
internal import StallModel

/// The watchdog's account of its own presence. For its own thread.
struct Attendance: ~Copyable {
    /// How long, in all, nothing of the process can have run.
    private(set) var absence = Duration.zero
    private let schedule: CInt
    private var runDelay: Duration?
    private var asleepSince: MonotonicInstant?

    /// Less than this says nothing.
    private static let tolerance = Duration.milliseconds(1)

    init() {
        schedule = open("/proc/self/task/\(stall_gettid())/schedstat", O_RDONLY | O_CLOEXEC)
    }

    deinit { if schedule >= 0 { close(schedule) } }

    mutating func goToSleep(at now: MonotonicInstant) {
        asleepSince = now
        runDelay = readRunDelay()
    }

    /// Notes how late it is.
    mutating func wake(expectedAt due: MonotonicInstant?, at now: MonotonicInstant) {
        guard let due, let asleepSince else { return }
        // It may have been too busy to go to sleep in time: then it was there.
        let late = now - max(due, asleepSince)
        guard late > Self.tolerance else { return }
        var explained = Duration.zero
        if let before = runDelay, let after = readRunDelay() { explained = after - before }
        let unexplained = late - explained
        if unexplained > Self.tolerance { absence += unexplained }
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
