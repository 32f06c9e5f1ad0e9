// Tracks when the process was suspended. Pure: it is given the time, the state of the suspension probe, and what the
// kernel counted of the watchdog itself.
//
//     the suspension probe was interrupted              the process was stopped; it is not known for how much of the time
//     the watchdog slept longer than it wanted to,      it was kept from coming: its machine was paused
//       and has neither run nor queued for a CPU since
//     it came late because it queued for a CPU          the process was there
//     it was woken, and came late                       the waking thread lacked a CPU between its decision and the wake-up

internal import StallModel

/// What the kernel has counted of the watchdog's own thread.
struct OwnCounters: Hashable, Sendable {
    var cpuTime: Duration
    /// Time it has waited for a CPU; nil where the kernel does not count.
    var runDelay: Duration?
}

/// The watchdog's account of when the process was there. For its own thread.
struct SuspensionTracker {
    /// When nothing of the process can have run.
    private(set) var suspendedIntervals = SuspendedIntervals()
    /// Up to when nothing has interrupted the suspension probe, or that is accounted for.
    private var checked: MonotonicInstant
    /// When it went to sleep, and the counters then.
    private var asleep = MonotonicInstant(nanoseconds: 0)
    private var counters = OwnCounters(cpuTime: .zero)

    /// A wake-up may come this late on a sound machine: a tick of the kernel's. Measured at load 8: 1.4 ms in 1,500.
    private static let tolerance = Duration.milliseconds(4)

    init(at now: MonotonicInstant) { checked = now }

    /// Looks at the time since the last check.
    ///
    /// - Parameters:
    ///   - before, after: The instants between which the suspension probe was looked at.
    mutating func check(
        from before: MonotonicInstant, to after: MonotonicInstant, wasDisturbed: Bool
    ) {
        if wasDisturbed { suspendedIntervals.note(from: checked, to: after, after - checked) }
        checked = before
    }

    mutating func goToSleep(at now: MonotonicInstant, _ counters: OwnCounters) {
        asleep = now
        self.counters = counters
    }

    /// It has slept, until `due` if it was not woken.
    mutating func wake(
        expectedAt due: MonotonicInstant?, at now: MonotonicInstant, _ counters: OwnCounters
    ) {
        // What was due while it was at work, at a capture that took its time, was not missed in its sleep.
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

/// Stretches of time in which the process cannot have run, or only for a part of them. Inline: the watchdog keeps them
/// while it may not allocate.
package struct SuspendedIntervals: Sendable {
    private struct Stretch {
        var from, to: MonotonicInstant
        /// How much of it was missed.
        var time: Duration
        /// The suspension probe has seen it; else the watchdog only came late, perhaps alone.
        var isStop: Bool

        static let none = Stretch(
            from: MonotonicInstant(nanoseconds: 0), to: MonotonicInstant(nanoseconds: 0),
            time: .zero,
            isStop: false)
    }

    /// The last ones, in a ring: a stall that is still to be judged is rarely older.
    private var stretches = InlineArray<32, Stretch>(repeating: .none)
    private var next = 0
    /// Delays of the watchdog up to this length do not count.
    private var negligible = Duration.zero

    package init() {}

    mutating func note(
        from: MonotonicInstant, to: MonotonicInstant, _ time: Duration, isStop: Bool = true
    ) {
        stretches[next] = Stretch(from: from, to: to, time: min(time, to - from), isStop: isStop)
        next = (next + 1) % stretches.count
    }

    /// Without delays of the watchdog that are too short to mean a pause of the machine: one processor of a virtual
    /// machine may stand still for some milliseconds while the other runs the app.
    func withoutPauses(upTo length: Duration) -> SuspendedIntervals {
        var suspendedIntervals = self
        suspendedIntervals.negligible = length
        return suspendedIntervals
    }

    /// How much of an interval can have been missed, at most.
    func time(from: MonotonicInstant, to: MonotonicInstant) -> Duration {
        var sum = Duration.zero
        var index = 0
        while index < stretches.count {
            let stretch = stretches[index]
            index += 1
            guard stretch.isStop || stretch.time > negligible else { continue }
            let overlap = min(to, stretch.to) - max(from, stretch.from)
            sum += max(.zero, min(overlap, stretch.time))
        }
        return sum
    }
}
