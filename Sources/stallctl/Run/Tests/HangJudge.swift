// Decides when a run of tests counts as hung. Pure: the time is an argument.

internal import StallModel

struct HangJudge {
    struct Limits: Equatable {
        /// How long no test may start or end.
        var test: Duration?
        /// How long the whole run may take.
        var deadline: Duration?
        /// How long after a report the processes are ended; nil: never.
        var kill: Duration?
    }

    enum Reason: Equatable {
        case noProgress(Duration)
        case deadline(Duration)
    }

    enum Verdict: Equatable {
        case goesOn
        case hangs(Reason)
        /// The report was given long enough ago.
        case kill
    }

    /// A longer time between two calls is left out: this process was stopped, or the machine slept.
    static let longestGap = Duration.seconds(5)

    private let limits: Limits
    private var start: MonotonicInstant
    private var lastLook: MonotonicInstant
    /// The state that was reported, by its last change.
    private var reported: (change: MonotonicInstant, at: MonotonicInstant)?
    private var deadlineReported: MonotonicInstant?
    private var skipped = Duration.zero
    private var skippedSince: MonotonicInstant

    init(_ limits: Limits, at now: MonotonicInstant) {
        self.limits = limits
        start = now
        lastLook = now
        skippedSince = now
    }

    /// - Parameters:
    ///   - lastChange: The last sign of progress; nil while no tests run.
    mutating func verdict(lastChange: MonotonicInstant?, at now: MonotonicInstant) -> Verdict {
        let gap = now - lastLook
        lastLook = now
        if let change = lastChange, change != skippedSince {
            skippedSince = change
            skipped = .zero
        }
        if gap > Self.longestGap { skip(gap) }
        if let at = deadlineReported {
            return isTimeToKill(since: at, now) ? .kill : .goesOn
        }
        if let deadline = limits.deadline, now - start >= deadline {
            if let reported, reported.change == lastChange {
                deadlineReported = reported.at
                return .goesOn
            }
            deadlineReported = now
            return .hangs(.deadline(deadline))
        }
        guard let lastChange else {
            reported = nil
            return .goesOn
        }
        if let reported, reported.change == lastChange {
            return isTimeToKill(since: reported.at, now) ? .kill : .goesOn
        }
        reported = nil
        let still = now - lastChange - skipped
        guard let limit = limits.test, still >= limit else { return .goesOn }
        reported = (lastChange, now)
        return .hangs(.noProgress(still))
    }

    private mutating func skip(_ gap: Duration) {
        skipped += gap
        start = start + gap
        if let at = deadlineReported { deadlineReported = at + gap }
        if let old = reported { reported = (old.change, old.at + gap) }
    }

    private func isTimeToKill(since report: MonotonicInstant, _ now: MonotonicInstant) -> Bool {
        limits.kill.map { now - report >= $0 } ?? false
    }
}
