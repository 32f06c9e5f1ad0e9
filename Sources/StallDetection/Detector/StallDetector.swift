// Decides whether the watched loop is stalled. Pure: takes the time as input and never reads a clock, so every rule
// here can be tested without sleeping. Watchdog.swift gives it a thread.
//
//     LoopBeacon (one atomic word, written by the loop) -> StallDetector -> StallStep

package import StallModel

/// The facts of one incident. Reported repeatedly until the incident has ended.
package struct StallIncident: Equatable, Sendable {
    /// When the loop last made progress; with the loop it identifies the incident.
    package var began: MonotonicInstant
    package var duration: Duration
    /// The threshold that it exceeded.
    package var threshold: Duration
    package var cpuTime: Duration
    /// The part of a stall in which the thread waited for a CPU or was stopped. Zero where that is negligible or unknown,
    /// and where the verdict says it of the whole.
    package var delayedTime: Duration
    /// How much later than the threshold it was noticed.
    package var detectionDelay: Duration
    package var verdict: StallVerdict
    package var hasEnded: Bool
    /// The event that ended it; nil while it lasts.
    package var ending: StallEnding?

    package init(
        began: MonotonicInstant, duration: Duration, threshold: Duration, cpuTime: Duration,
        delayedTime: Duration = .zero, detectionDelay: Duration, verdict: StallVerdict,
        hasEnded: Bool, ending: StallEnding? = nil
    ) {
        self.began = began
        self.duration = duration
        self.threshold = threshold
        self.cpuTime = cpuTime
        self.delayedTime = verdict.delayedTime(delayedTime, in: duration)
        self.detectionDelay = detectionDelay
        self.verdict = verdict
        self.hasEnded = hasEnded
        self.ending = ending
    }

    /// As reports have it.
    package var outcome: StallOutcome {
        StallOutcome(!hasEnded ? .open : ending == .exit ? .hang : .ended, ending)
    }
}

extension StallVerdict {
    /// - Parameter delayed: How long the thread waited for a CPU or was stopped in the stall.
    fileprivate func delayedTime(_ delayed: Duration, in duration: Duration) -> Duration {
        // Every thread waits for a CPU for microseconds, and each store would pay for the number.
        guard self == .stalled, delayed >= duration / 64 else { return .zero }
        return min(delayed, duration)
    }
}

/// The actions after a poll, in this order.
struct StallStep: Equatable, Sendable {
    /// Sample the thread now.
    var takesSample = false
    /// Report that the stall began, continues, or ended.
    var incident: StallIncident?
    /// The suspicion was unfounded or is over: discard its samples, after `incident`.
    var dropsSuspicion = false
    /// How long the piece of work of a suspicion without an incident may have lasted, if it was seen at several polls.
    var unprovenTime: Duration?
}

/// One loop's detector.
struct StallDetector: Sendable {
    /// Takes effect with the next suspicion.
    var policy: DetectionPolicy
    /// When the next poll is due; nil if nothing can happen before the loop wakes up.
    private(set) var nextPoll: MonotonicInstant?
    /// The word under suspicion; the watchdog sets the loop's alarm on it.
    var suspectedWord: UInt64? { suspicion?.word }

    /// When the suspected span began.
    var suspectedSince: MonotonicInstant? { suspicion?.clock.began }

    /// When the suspected span reaches the threshold; nil once it was reported.
    var unreachedThreshold: MonotonicInstant? {
        guard let suspicion, suspicion.lastReport == nil else { return nil }
        return suspicion.clock.began + policy.threshold
    }

    /// A stall is open.
    var isStalled: Bool { suspicion?.lastReport != nil }

    private var suspicion: Suspicion?
    private var lastWord: UInt64 = 0
    /// The thread's evidence at the last polls.
    private(set) var history: ThreadHistory

    private struct Suspicion: Equatable {
        let word: UInt64
        var clock: StallClock
        var nextSample: MonotonicInstant
        var spacing: Duration
        var samples = 0
        var detectionDelay: Duration?
        var lastReport: MonotonicInstant?
        /// The last report called it stalled, not starved or stopped.
        var isReportedAsStall = false
        /// More is known of it than was reported.
        var hasUpdate = false
        /// When its last piece of work will have been long enough to be a stall, for all that is known of it.
        var confirmation: MonotonicInstant
        /// It was so long at the last poll.
        var isConfirmed = false
        /// The first and the last poll that are known to have seen its last piece of work.
        var seen: ClosedRange<MonotonicInstant>?
    }

    /// - Parameter before: The thread's evidence when watching begins.
    init(policy: DetectionPolicy, before: ThreadEvidence? = nil) {
        self.policy = policy
        history = ThreadHistory(before)
    }

    /// Whether the thread's full evidence is needed, or its counters suffice.
    func isSuspect(_ reading: LoopReading, at now: MonotonicInstant) -> Bool {
        suspicion != nil || reading.status == .busy && now >= reading.since + policy.suspicion
    }

    /// Reports an open stall at the next poll regardless of the refresh interval: its stack has come.
    mutating func refresh() { suspicion?.hasUpdate = true }

    /// Evaluates one poll of the loop.
    ///
    /// - Parameters:
    ///   - reading: The beacon's content.
    ///   - evidence: The kernel's evidence about the thread, read after the beacon.
    ///   - now: The time of the poll.
    ///   - suspendedIntervals: When the process was suspended, as tracked by the watchdog.
    ///   - end: When the loop left the suspected word, if it noted that.
    ///   - busyBefore: How long the loop was busy between the last poll and the beginning of the current span.
    ///   - isProven: The reading is confirmed. An unconfirmed one is reported only from twice the threshold on, since
    ///     what should confirm it may be stuck itself.
    ///   - undividedSince: Since when the span is known to be one piece of work; nil if it is from its beginning.
    ///     The time before may have been another one's, and only the time since then can confirm a stall.
    mutating func poll(
        _ reading: LoopReading, _ evidence: ThreadEvidence, at now: MonotonicInstant,
        suspendedIntervals: SuspendedIntervals = SuspendedIntervals(), end: MonotonicInstant? = nil,
        busyBefore: Duration = .zero, isProven: Bool = true,
        undividedSince: MonotonicInstant? = nil
    ) -> StallStep {
        var step = StallStep()
        let busyNow = reading.status == .busy ? max(.zero, now - reading.since) : .zero
        if let suspicion, suspicion.word != reading.word {
            let end = end ?? min(now, reading.since)
            let rest = max(.zero, end - suspicion.clock.lastPoll)
            step.incident = conclude(
                suspicion, evidence, at: end, now: now,
                busyAfter: max(.zero, busyBefore + busyNow - rest),
                suspendedIntervals: suspendedIntervals)
            step.dropsSuspicion = true
            if step.incident == nil, let seen = suspicion.seen, seen.lowerBound < seen.upperBound {
                step.unprovenTime = now - seen.lowerBound
            }
            self.suspicion = nil
        }
        switch reading.status {
        case .idle, .waiting:
            // A loop that makes progress is polled now and then. A loop that still waits wakes the watchdog when it
            // wakes up.
            nextPoll = reading.word == lastWord ? nil : now + policy.suspicion
        case .busy where now < reading.since + policy.suspicion:
            nextPoll = reading.since + policy.suspicion
        case .busy:
            var suspicion = self.suspicion ?? newSuspicion(of: reading, busyBefore: busyBefore)
            suspicion.clock.advance(
                to: now, evidence,
                suspendedIntervals: suspendedIntervals.withoutPauses(upTo: policy.negligiblePause))
            if now >= suspicion.nextSample, suspicion.samples < policy.sampleLimit {
                step.takesSample = true
                suspicion.samples += 1
                suspicion.nextSample = now + suspicion.spacing
                suspicion.spacing = min(suspicion.spacing * 2, policy.longestSpacing)
            }
            // A stall that ended at this poll is reported first; the new one is due at once.
            if let undividedSince {
                let needed = policy.threshold - StallClock.negligiblePart(of: policy.threshold)
                suspicion.confirmation = undividedSince + needed
                suspicion.seen = undividedSince...max(undividedSince, now)
            }
            suspicion.isConfirmed = now >= suspicion.confirmation
            let isOverdue = now >= reading.since + policy.threshold * 2
            if step.incident == nil, suspicion.isConfirmed, isProven || isOverdue {
                step.incident = report(&suspicion, at: now)
            }
            nextPoll = deadline(of: suspicion, at: now)
            self.suspicion = suspicion
        }
        lastWord = reading.word
        history.add(evidence, at: now, busy: busyBefore + busyNow)
        return step
    }

    private func newSuspicion(of reading: LoopReading, busyBefore: Duration) -> Suspicion {
        let prior = history.evidence(
            before: reading.since, busy: busyBefore, slack: policy.suspicion)
        return Suspicion(
            word: reading.word,
            clock: StallClock(began: reading.since, prior),
            nextSample: reading.since + policy.suspicion, spacing: policy.firstSpacing,
            confirmation: reading.since)
    }

    /// Judges a stall that no poll observed while it lasted, from the loop's own counters. Nil if it was not the loop's
    /// own time and too short to be reported for that, as far as the time since the previous poll is known.
    ///
    /// The estimate is conservative: the CPU time that the thread must have used in it, or its length less all the time
    /// that the thread waited for a CPU since the previous poll.
    ///
    /// - Parameters:
    ///   - history: The thread's evidence from before this poll.
    ///   - busyElsewhere: How long the loop was busy with other callouts since the previous poll.
    func judgeAfterwards(
        began: MonotonicInstant, length: Duration, threshold: Duration, history: ThreadHistory,
        busyElsewhere: Duration, _ evidence: ThreadEvidence, at now: MonotonicInstant,
        suspendedIntervals: SuspendedIntervals
    ) -> StallIncident? {
        var prior = history.evidence(
            before: began, busy: busyElsewhere, slack: policy.suspicion)
        guard length >= threshold, prior.evidence != nil else { return nil }
        prior.unobserved?.countAllDelay()
        var clock = StallClock(began: began, prior)
        clock.advance(to: began + length, evidence.counters, suspendedIntervals: suspendedIntervals)
        let verdict = clock.verdict(threshold: threshold)
        let starvation = DetectionPolicy(threshold: threshold).starvation
        guard verdict == .stalled || length >= starvation else { return nil }
        return StallIncident(
            began: began, duration: length, threshold: threshold, cpuTime: clock.cpuTime,
            // The clock takes all waits since the previous poll for the stall's; some may be of other callouts.
            delayedTime: clock.delayed - max(.zero, busyElsewhere),
            detectionDelay: now - began - threshold, verdict: verdict, hasEnded: true,
            ending: .recovered)
    }

    /// Ends an open stall, because no poll follows.
    mutating func stop(
        _ evidence: ThreadEvidence, at now: MonotonicInstant,
        suspendedIntervals: SuspendedIntervals = SuspendedIntervals(),
        ending: StallEnding = .stop
    ) -> StallIncident? {
        defer { suspicion = nil }
        return suspicion.flatMap {
            conclude(
                $0, evidence, at: now, now: now, suspendedIntervals: suspendedIntervals,
                ending: ending)
        }
    }

    private func report(_ suspicion: inout Suspicion, at now: MonotonicInstant) -> StallIncident? {
        let clock = suspicion.clock
        let elapsed = now - clock.began
        let isStall = clock.isStall(threshold: policy.threshold)
        if let last = suspicion.lastReport {
            guard
                suspicion.hasUpdate || now >= last + policy.refreshInterval
                    || isStall && !suspicion.isReportedAsStall
            else { return nil }
        } else {
            guard isStall || elapsed >= policy.starvation else { return nil }
            suspicion.detectionDelay = elapsed - policy.threshold
        }
        suspicion.lastReport = now
        suspicion.isReportedAsStall = isStall
        suspicion.hasUpdate = false
        return StallIncident(
            began: clock.began, duration: elapsed, threshold: policy.threshold,
            cpuTime: clock.cpuTime, delayedTime: clock.delayed,
            detectionDelay: suspicion.detectionDelay ?? .zero,
            verdict: clock.verdict(threshold: policy.threshold), hasEnded: false)
    }

    private func conclude(
        _ suspicion: Suspicion, _ evidence: ThreadEvidence, at end: MonotonicInstant,
        now: MonotonicInstant, busyAfter: Duration = .zero, suspendedIntervals: SuspendedIntervals,
        ending: StallEnding = .recovered
    ) -> StallIncident? {
        var clock = suspicion.clock
        // The loop reads the time of the end before it publishes it, and may lose its CPU in between: what was reported
        // does not become shorter.
        let end = max(end, suspicion.lastReport ?? end)
        // The thread has moved on: its state now is not evidence of the end of the stall, but its counters are.
        clock.advance(
            to: end, evidence.counters, readAt: now, busyAfter: busyAfter,
            suspendedIntervals: suspendedIntervals.withoutPauses(upTo: policy.negligiblePause))
        let duration = end - clock.began
        let isReportable = duration >= policy.threshold && suspicion.isConfirmed
        guard suspicion.lastReport != nil || isReportable else { return nil }
        return StallIncident(
            began: clock.began, duration: duration, threshold: policy.threshold,
            cpuTime: clock.cpuTime, delayedTime: clock.delayed,
            detectionDelay: suspicion.detectionDelay ?? now - clock.began - policy.threshold,
            verdict: clock.verdict(threshold: policy.threshold), hasEnded: true, ending: ending)
    }

    private func deadline(of suspicion: Suspicion, at now: MonotonicInstant) -> MonotonicInstant {
        var deadline =
            suspicion.samples < policy.sampleLimit
            ? suspicion.nextSample : now + policy.refreshInterval
        if let last = suspicion.lastReport {
            deadline = min(deadline, last + policy.refreshInterval)
        } else {
            let threshold = max(
                suspicion.clock.began + policy.threshold, suspicion.confirmation)
            // After the threshold: the earliest time at which the counted time can reach it.
            let missing = max(suspicion.clock.missing(to: policy.threshold), .milliseconds(1))
            deadline = min(deadline, now < threshold ? threshold : now + missing)
        }
        if !suspicion.isReportedAsStall {
            // A loop that was starved or stopped so far may still stall.
            let elapsed = now - suspicion.clock.began
            deadline = min(deadline, now + max(policy.pollSpacing, elapsed / 64))
        }
        return deadline
    }
}
