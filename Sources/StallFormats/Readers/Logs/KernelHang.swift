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
    /// Tasks that wait for work are one number on all processors.
    private let cpu: Int32?
    private let isOfTask: Bool
    private let clock: KernelLine.Clock
    private let time: Span
    /// Since boot: it is not set as a clock is.
    private let uptime: Span?

    /// In microseconds.
    private struct Span {
        var start: Int64
        var end: Int64

        init(_ end: Int64, _ duration: Duration) {
            (start, self.end) = (end &- duration.nanoseconds / 1000, end)
        }

        /// The time between two reports: a number of seconds is rounded.
        private static let tolerance: Int64 = 5_000_000

        func goesOn(in other: Span) -> Bool {
            other.end > end && abs(other.start &- start) <= Self.tolerance
        }
    }

    /// In microseconds.
    private static let (margin, rebootMargin): (Int64, Int64) = (60_000_000, 10_000_000)

    /// Nil where nothing says when it began.
    init?(_ header: KernelStallHeader, _ line: KernelLine) {
        guard let task = header.task, let pid = header.pid, let duration = header.duration,
            let (clock, time) = line.clock
        else { return nil }
        (host, self.task, self.pid, self.clock) = (line.host, task, pid, clock)
        (cpu, isOfTask) = (header.cpu, header.isOfTask)
        self.time = Span(time, duration)
        uptime = line.uptime.map { Span($0, duration) }
    }

    /// Whether another report is of the same hang, later.
    func goesOn(in other: KernelHang) -> Bool {
        guard other.pid == pid, other.cpu == cpu, other.isOfTask == isOfTask, other.task == task,
            other.host == host
        else { return false }
        if let uptime, let later = other.uptime { return uptime.goesOn(in: later) }
        return other.clock == clock && time.goesOn(in: other.time)
    }

    /// The kernel would have repeated it before this line, at equal intervals, or has started again.
    func isOver(at line: KernelLine) -> Bool {
        guard line.host == host else { return false }
        if let uptime, let now = line.uptime, now < uptime.end &- Self.rebootMargin { return true }
        guard let (clock, now) = line.clock, clock == self.clock else { return false }
        return abs(now &- time.end) > time.end &- time.start + Self.margin
    }
}
