// Tracks intervals in which the process was suspended. Pure: takes the time, the state of the suspension probe, and the
// kernel's counters of the watchdog thread as input.
//
//     the suspension probe was interrupted              the process was stopped, for an unknown part of the interval
//     the watchdog slept past its deadline, and has     the machine was paused
//       neither run nor waited for a CPU since
//     it was late because it waited for a CPU           the process was not suspended
//     it was woken, and was late                        the waking thread lost its CPU before the wake-up

internal import StallModel

/// The kernel's counters of the watchdog's own thread.
package struct OwnCounters: Equatable, Sendable {
    var cpuTime: Duration
    /// Time it has waited for a CPU; nil if the kernel does not count it.
    var runDelay: Duration?

    package init(cpuTime: Duration, runDelay: Duration? = nil) {
        self.cpuTime = cpuTime
        self.runDelay = runDelay
    }
}

/// The watchdog's record of when the process was suspended. Confined to the watchdog's thread.
struct SuspensionTracker {
    /// When no thread of the process can have run.
    private(set) var suspendedIntervals = SuspendedIntervals()
    /// Up to here, every interruption of the suspension probe is accounted for.
    private var checked: MonotonicInstant
    /// When the watchdog went to sleep, and its counters then.
    private var asleep = MonotonicInstant(nanoseconds: 0)
    private var counters = OwnCounters(cpuTime: .zero)

    /// Normal lateness of a wake-up: one kernel tick. Measured at load 8: 1.4 ms in 1,500 wake-ups.
    private static let tolerance = Duration.milliseconds(4)

    init(at now: MonotonicInstant) { checked = now }

    /// Accounts for the time since the last check.
    ///
    /// - Parameters:
    ///   - before, after: The instants between which the suspension probe was read.
    mutating func check(
        from before: MonotonicInstant, to after: MonotonicInstant, wasInterrupted: Bool
    ) {
        if wasInterrupted { suspendedIntervals.note(from: checked, to: after, after - checked) }
        checked = before
    }

    mutating func goToSleep(at now: MonotonicInstant, _ counters: OwnCounters) {
        asleep = now
        self.counters = counters
    }

    /// The watchdog has slept, until `due` unless it was woken.
    mutating func wake(
        expectedAt due: MonotonicInstant?, at now: MonotonicInstant, _ counters: OwnCounters
    ) {
        // A deadline that passed while the watchdog was busy, for example with a long capture, was not missed in its
        // sleep.
        guard let due = due.map({ max($0, asleep) }), due < now else { return }
        var explained = counters.cpuTime - self.counters.cpuTime
        if let before = self.counters.runDelay, let after = counters.runDelay {
            explained += after - before
        }
        let missed = now - due - explained
        if missed > Self.tolerance {
            suspendedIntervals.note(from: due, to: now, missed, isStop: false)
        }
    }
}

/// Intervals in which the process was suspended, entirely or in part. Inline storage: the watchdog writes it where it
/// may not allocate.
package struct SuspendedIntervals: Sendable {
    private struct Interval {
        var from, to: MonotonicInstant
        /// How much of the interval was missed.
        var time: Duration
        /// Observed by the suspension probe. Otherwise only the watchdog is known to have been late.
        var isStop: Bool

        static let none = Interval(
            from: MonotonicInstant(nanoseconds: 0), to: MonotonicInstant(nanoseconds: 0),
            time: .zero,
            isStop: false)
    }

    /// The last ones, in a ring: a stall that is still open is rarely older.
    private var intervals = InlineArray<32, Interval>(repeating: .none)
    private var next = 0
    /// Delays of the watchdog up to this length are ignored.
    private var negligible = Duration.zero

    package init() {}

    mutating func note(
        from: MonotonicInstant, to: MonotonicInstant, _ time: Duration, isStop: Bool = true
    ) {
        intervals[next] = Interval(from: from, to: to, time: min(time, to - from), isStop: isStop)
        next = (next + 1) % intervals.count
    }

    /// A copy that ignores delays of the watchdog too short to mean a pause of the machine: one core of a virtual
    /// machine may pause for some milliseconds while the other runs the app.
    func withoutPauses(upTo length: Duration) -> SuspendedIntervals {
        var suspendedIntervals = self
        suspendedIntervals.negligible = length
        return suspendedIntervals
    }

    /// How much of an interval may have been missed, at most.
    func time(from: MonotonicInstant, to: MonotonicInstant) -> Duration {
        var sum = Duration.zero
        var index = 0
        while index < intervals.count {
            let interval = intervals[index]
            index += 1
            guard interval.isStop || interval.time > negligible else { continue }
            let overlap = min(to, interval.to) - max(from, interval.from)
            sum += max(.zero, min(overlap, interval.time))
        }
        return sum
    }
}
