// How much of the time since a callback began is the thread's own. By wall time alone, every starved or suspended
// process is stalled; CPU time alone misses every blocking call.
//
//     counted = the time since it began
//             - time it waited for a CPU (counted by the kernel)
//             - time in which the whole process was suspended (SuspensionTracker.swift)
//             - time it was stopped
//     but at least the CPU time that it used.

internal import StallModel

/// The kernel's evidence about a thread at one poll. Nil where it could not be read; wall time is used then.
package struct ThreadEvidence: Equatable, Sendable {
    /// CPU time of the thread since its start.
    package var cpuTime: Duration?
    /// Time the thread has waited for a CPU since its start. The kernel adds a wait when it is over.
    package var runDelay: Duration?
    /// The state letter of `/proc/self/task/TID/stat` (`R`, `S`, `D`, `T`, `t` ...).
    package var state: UInt8?
    /// Runnable, and waiting for a CPU now.
    package var waitsForCPU: Bool
    /// The readings are too far apart: the thread may have begun to wait for a CPU between them.
    var isSpread = false
    /// A debugger is attached to the thread.
    package var isTraced: Bool
    /// How often the control group's CPU quota has been used up.
    package var throttleCount: Int?

    package init(
        cpuTime: Duration? = nil, runDelay: Duration? = nil, state: UInt8? = nil,
        waitsForCPU: Bool = false, isTraced: Bool = false, throttleCount: Int? = nil
    ) {
        self.cpuTime = cpuTime
        self.runDelay = runDelay
        self.state = state
        self.waitsForCPU = waitsForCPU
        self.isTraced = isTraced
        self.throttleCount = throttleCount
    }

    var mayWaitForCPU: Bool { waitsForCPU || isSpread }
    var isRunnable: Bool { state == UInt8(ascii: "R") }
    var isStopped: Bool { state == UInt8(ascii: "T") || state == UInt8(ascii: "t") }
    /// The part that stays valid after the thread has moved on: its counters.
    var counters: ThreadEvidence {
        ThreadEvidence(
            cpuTime: cpuTime, runDelay: runDelay, isTraced: isTraced, throttleCount: throttleCount)
    }
}

/// Adds up the time of one suspected stall, poll by poll.
struct StallClock: Equatable, Sendable {
    /// When the loop last made progress.
    let began: MonotonicInstant
    /// Time up to the last poll whose evidence is final, and a preliminary account of the time since then.
    private var settled = Account()
    private var pending = Account()
    private var last: MonotonicInstant
    private var lastEvidence: ThreadEvidence?
    /// CPU time that the thread may have used outside of the stall since `lastEvidence`. Zero after the first final
    /// poll.
    private var usedElsewhere: Duration
    /// Time waiting for a CPU that cannot belong to the stall, because it exceeds the stall's length. Zero after the
    /// first final poll.
    private var delayedElsewhere = Duration.zero
    /// The part of the stall that the evidence from before it already contains.
    private let unobserved: UnobservedStart?
    /// The last poll, final or not.
    private(set) var lastPoll: MonotonicInstant
    private var wasTraced = false
    private var throttleCount = 0
    /// Time between polls that both found the thread runnable without a CPU, since `last`, whether the kernel counts it
    /// or not.
    private var observedDelay = Duration.zero
    private var lastWait: Wait?

    private struct Wait: Equatable {
        var at: MonotonicInstant
        var cpuTime, runDelay: Duration?
    }

    private struct Account: Equatable {
        var counted = Duration.zero
        /// The part of it that was spent on a CPU with certainty.
        var used = Duration.zero
        var cpuTime = Duration.zero
        var uncounted = Duration.zero
        /// The part of the uncounted time in which the thread was stopped, alone or with its process.
        var stopped = Duration.zero

        static func + (left: Self, right: Self) -> Self {
            Account(
                counted: left.counted + right.counted, used: left.used + right.used,
                cpuTime: left.cpuTime + right.cpuTime, uncounted: left.uncounted + right.uncounted,
                stopped: left.stopped + right.stopped)
        }
    }

    /// The part of the time that counts as a stall.
    var counted: Duration { total.counted }
    /// The part that was not the thread's own: it waited for a CPU or was stopped.
    var delayed: Duration { total.uncounted }
    /// The thread's CPU time since `began`, as far as known.
    var cpuTime: Duration { settled.cpuTime + pending.cpuTime }

    /// - Parameter prior: The evidence from before `began`. It bounds the CPU time of the first interval, of which the
    ///   CPU time of other callouts is no part.
    init(began: MonotonicInstant, _ prior: PriorEvidence) {
        self.began = began
        last = began
        usedElsewhere = max(.zero, prior.busyElsewhere)
        unobserved = prior.unobserved
        lastPoll = began
        // The state from before `began` does not hold any more.
        lastEvidence = prior.evidence?.counters
    }

    /// Accounts for the time since the last poll.
    ///
    /// - Parameters:
    ///   - reading: When the evidence was read, if later: the thread does something else since `now`.
    ///   - busyAfter: How long the loop was busy between the two.
    ///   - suspendedIntervals: When the process was suspended, as tracked by the watchdog.
    mutating func advance(
        to now: MonotonicInstant, _ evidence: ThreadEvidence,
        readAt reading: MonotonicInstant? = nil, busyAfter: Duration = .zero,
        suspendedIntervals: SuspendedIntervals
    ) {
        let interval = now - last
        guard interval > .zero else { return }
        lastPoll = now
        if evidence.isTraced { wasTraced = true }
        if let count = evidence.throttleCount, let before = lastEvidence?.throttleCount {
            throttleCount = max(throttleCount, count - before)
        }
        observeWait(evidence, at: now)
        narrowElsewhere(interval, evidence)
        var account = account(
            for: interval, evidence, usedAfter: busyAfter,
            suspendedInterval: suspendedIntervals.time(from: last, to: now))
        let correction = correction(evidence, max(interval, (reading ?? now) - last))
        account.counted -= correction
        account.uncounted += correction
        // The kernel adds a wait for the CPU when it is over: the next poll knows what this one cannot.
        guard evidence.isStopped || !evidence.mayWaitForCPU else { return pending = account }
        settled = settled + account
        pending = Account()
        (usedElsewhere, delayedElsewhere) = (.zero, .zero)
        last = now
        observedDelay = .zero
        let throttles = lastEvidence?.throttleCount ?? evidence.throttleCount
        lastEvidence = evidence
        // Counted from the beginning of the stall: one throttling may last long after it was counted.
        lastEvidence?.throttleCount = throttles
    }

    /// Narrows down how much of the first interval lies before the stall. Time that is counted after the first poll of
    /// a stall belongs to the stall.
    private mutating func narrowElsewhere(_ interval: Duration, _ evidence: ThreadEvidence) {
        if let total = evidence.cpuTime, let before = lastEvidence?.cpuTime {
            usedElsewhere = min(usedElsewhere, max(.zero, total - before))
        }
        if let delay = evidence.runDelay, let before = lastEvidence?.runDelay {
            delayedElsewhere = max(delayedElsewhere, delay - before - interval)
        }
    }

    /// How much of the final time is known now to have been a wait for the CPU: the wait counted now is longer than the
    /// time since that poll. The poll that made the time final missed the wait, because the watchdog lost its own CPU between two
    /// readings.
    private func correction(_ evidence: ThreadEvidence, _ interval: Duration) -> Duration {
        guard last > began, let delay = evidence.runDelay, let before = lastEvidence?.runDelay
        else { return .zero }
        return max(.zero, min(delay - before - interval, settled.counted - settled.used))
    }

    /// A paused core of a virtual machine takes the thread's time without the kernel counting it.
    private mutating func observeWait(_ evidence: ThreadEvidence, at now: MonotonicInstant) {
        guard evidence.waitsForCPU else { return lastWait = nil }
        // No counter changed in between: it is one continuous wait.
        if let lastWait, lastWait.cpuTime == evidence.cpuTime,
            lastWait.runDelay == evidence.runDelay
        {
            observedDelay += now - lastWait.at
        }
        lastWait = Wait(at: now, cpuTime: evidence.cpuTime, runDelay: evidence.runDelay)
    }

    /// A negligible share of the threshold: the kernel does not say whether a short wait for the CPU came just before
    /// the callout or in it.
    static func negligiblePart(of threshold: Duration) -> Duration { threshold / 64 }

    /// How much counted time is missing to the threshold.
    func missing(to threshold: Duration) -> Duration {
        threshold - Self.negligiblePart(of: threshold) - counted
    }

    /// The loop was busy for the threshold, and all but a negligible part of it was its own time.
    func isStall(threshold: Duration) -> Bool {
        total.counted + total.uncounted >= threshold && missing(to: threshold) <= .zero
    }

    /// The verdict on a loop that made no progress for at least the threshold.
    func verdict(threshold: Duration) -> StallVerdict {
        if wasTraced { return .debugger }
        if isStall(threshold: threshold) { return .stalled }
        if throttleCount > 0 { return .throttled }
        return total.stopped > total.uncounted / 2 ? .stopped : .starved
    }

    /// The time up to the last poll, without what the thread has probably waited for a CPU before the first evidence.
    private var total: Account {
        var all = settled + pending
        guard let unobserved else { return all }
        let elapsed = max(.zero, lastPoll - began - unobserved.length)
        let used = min(elapsed, all.cpuTime)
        let delayed = max(.zero, min(all.uncounted - all.stopped, elapsed - used))
        let probable = unobserved.probableDelay(
            delayed: delayed, blocked: elapsed - used - delayed, elapsed: elapsed)
        let delay = max(.zero, min(probable, all.counted - all.used))
        all.counted -= delay
        all.uncounted += delay
        return all
    }

    private func account(
        for interval: Duration, _ evidence: ThreadEvidence, usedAfter: Duration,
        suspendedInterval: Duration
    ) -> Account {
        var account = Account()
        var used = interval
        if let total = evidence.cpuTime, let before = lastEvidence?.cpuTime {
            account.cpuTime = min(interval, max(.zero, total - before))
            // CPU time that it used with certainty. Otherwise time waiting for a CPU would pass for earlier work.
            used = min(interval, max(.zero, total - before - usedElsewhere - usedAfter))
        } else if !evidence.isRunnable, evidence.cpuTime != nil {
            used = .zero
        }
        account.used = used
        account.counted = credit(
            for: interval, evidence, used: used, suspendedInterval: suspendedInterval)
        account.uncounted = interval - account.counted
        account.stopped =
            evidence.isStopped ? account.uncounted : min(account.uncounted, suspendedInterval)
        return account
    }

    /// The part of an interval that was the thread's own time; at least the CPU time it used.
    private func credit(
        for interval: Duration, _ evidence: ThreadEvidence, used: Duration,
        suspendedInterval: Duration
    ) -> Duration {
        if evidence.isStopped { return used }
        let present = max(.zero, interval - suspendedInterval)
        if let delay = evidence.runDelay, let before = lastEvidence?.runDelay {
            // The current wait for the CPU is not in the counters yet; it may be the whole interval.
            let delayed = max(delay - before - delayedElsewhere, observedDelay)
            return evidence.mayWaitForCPU ? used : max(used, present - max(.zero, delayed))
        }
        // Blocked at one end: the wait was the thread's own. Runnable at both ends, with little CPU time: starved.
        let wasRunnable = lastEvidence?.state == nil || lastEvidence?.isRunnable == true
        let isStarved = evidence.isRunnable && wasRunnable && used < interval * 3 / 4
        return isStarved ? used : max(used, present)
    }
}
