// The part of a kernel's report that is the same each time that a hang is repeated: the task, and when it began.
//
//     INFO: task postgres:4242 blocked for more than 120 seconds.
//     INFO: task postgres:4242 blocked for more than 241 seconds.

internal import StallModel

/// A hang, as one report of it has it.
struct KernelHang {
    private let host: String
    private let task: String
    private let pid: Int32
    private let clock: KernelLine.Clock
    /// In microseconds of the clock.
    private let (start, end): (Int64, Int64)

    /// The time between two reports, in microseconds: a number of seconds is rounded.
    private static let (tolerance, margin): (Int64, Int64) = (5_000_000, 60_000_000)

    /// Nil where nothing says when it began.
    init?(_ header: KernelStallHeader, _ line: KernelLine) {
        guard let task = header.task, let pid = header.pid, let duration = header.duration,
            let (clock, time) = line.clock
        else { return nil }
        (host, self.task, self.pid, self.clock) = (line.host, task, pid, clock)
        (start, end) = (time &- duration.nanoseconds / 1000, time)
    }

    /// Whether another report is of the same hang, later.
    func goesOn(in other: KernelHang) -> Bool {
        other.pid == pid && other.end > end && other.clock == clock
            && abs(other.start &- start) <= Self.tolerance && other.task == task
            && other.host == host
    }

    /// The kernel would have repeated it before this line: it does so at equal intervals.
    func isOver(at line: KernelLine) -> Bool {
        guard line.host == host, let (clock, time) = line.clock, clock == self.clock else {
            return false
        }
        return abs(time &- end) > end &- start + Self.margin
    }
}
