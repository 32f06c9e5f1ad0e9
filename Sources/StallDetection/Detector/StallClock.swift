// How much of the time since a callback began is the thread's own doing. Wall time alone calls every starved or
// suspended process stalled; the thread's CPU time alone misses every blocking call.
//
//     counted = the time since it began
//             - time it waited for a CPU (the kernel's own account)
//             - time in which the whole process cannot have run (SuspensionTracker.swift)
//             - time it was stopped
//     and at least the CPU time that it used.

package import StallModel

/// What the kernel says of a thread at one look. Nil where it could not be read: then wall time is believed.
package struct ThreadEvidence: Hashable, Sendable {
    /// CPU time the thread has used in its life.
    package var cpuTime: Duration?
    /// Time the thread has waited for a CPU in its life. A wait is booked when it is over.
    package var runDelay: Duration?
    /// The state letter of `/proc/self/task/TID/stat` (`R`, `S`, `D`, `T`, `t` ...).
    package var state: UInt8?
    /// It is ready to run and waits for a CPU now.
    package var waitsForCPU: Bool
    /// The readings are of instants too far apart: between them it may have begun to wait for a CPU.
    var isSpread = false
    /// A debugger is attached to it.
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
    /// The part that is still true when the thread has moved on: its counters.
    var counters: ThreadEvidence {
        ThreadEvidence(
            cpuTime: cpuTime, runDelay: runDelay, isTraced: isTraced, throttleCount: throttleCount)
    }
}

/// Adds up the time of one suspected stall, look by look.
package struct StallClock: Hashable, Sendable {
    /// When the loop last made progress.
    package let began: MonotonicInstant
    /// Time up to the last look whose evidence settles it, and time since then as far as it can be told now.
    private var settled = Account()
    private var pending = Account()
    private var last: MonotonicInstant
    private var lastEvidence: ThreadEvidence?
    /// Until the first look is settled: CPU time that the thread may have used outside of the stall since
    /// `lastEvidence`.
    private var usedElsewhere: Duration
    /// Until then: time in the queue for a CPU that cannot lie in the stall, because it is more than the stall has
    /// lasted.
    private var delayedElsewhere = Duration.zero
    private var wasTraced = false
    private var throttleCount = 0
    /// Time between looks that both found it ready to run without a CPU, since `last`: whatever the kernel books of it.
    private var observedDelay = Duration.zero
    private var lastWait: Wait?

    private struct Wait: Hashable {
        var at: MonotonicInstant
        var cpuTime, runDelay: Duration?
    }

    private struct Account: Hashable {
        var counted = Duration.zero
        /// The part of it that was spent on a CPU for certain.
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
    package var counted: Duration { settled.counted + pending.counted }
    /// The thread's CPU time since `began`, as far as it is known.
    package var cpuTime: Duration { settled.cpuTime + pending.cpuTime }

    /// - Parameter before: What was known of the thread before `began`, if anything: the part of the first
    ///   interval that it can have spent on the CPU is bounded by it.
    /// - Parameter busyElsewhere: How long the loop was busy with other things since `before` was read. The CPU time of that
    ///   is not the stall's.
    package init(
        began: MonotonicInstant, before: ThreadEvidence?, busyElsewhere: Duration = .zero
    ) {
        self.began = began
        last = began
        usedElsewhere = max(.zero, busyElsewhere)
        // What it did before it began says nothing of its state since.
        lastEvidence = before?.counters
    }

    /// Accounts for the time since the last look.
    ///
    /// - Parameter suspendedIntervals: When the process did not run, by the watchdog's own account.
    package mutating func advance(
        to now: MonotonicInstant, _ evidence: ThreadEvidence, suspendedIntervals: SuspendedIntervals
    ) {
        let interval = now - last
        guard interval > .zero else { return }
        if evidence.isTraced { wasTraced = true }
        if let count = evidence.throttleCount, let before = lastEvidence?.throttleCount {
            throttleCount = max(throttleCount, count - before)
        }
        witness(evidence, at: now)
        narrowElsewhere(interval, evidence)
        var account = account(
            for: interval, evidence, suspendedInterval: suspendedIntervals.time(from: last, to: now)
        )
        let correction = correction(evidence, interval)
        account.counted -= correction
        account.uncounted += correction
        // A wait for the CPU is booked when it is over: the next look tells what this one cannot.
        guard evidence.isStopped || !evidence.mayWaitForCPU else { return pending = account }
        settled = settled + account
        pending = Account()
        (usedElsewhere, delayedElsewhere) = (.zero, .zero)
        last = now
        observedDelay = .zero
        let throttles = lastEvidence?.throttleCount ?? evidence.throttleCount
        lastEvidence = evidence
        // Counted from the beginning: one throttling may end long after it was booked.
        lastEvidence?.throttleCount = throttles
    }

    /// The first look at a stall tells most of what belongs to the time before it: what comes after that look is the
    /// stall's.
    private mutating func narrowElsewhere(_ interval: Duration, _ evidence: ThreadEvidence) {
        if let total = evidence.cpuTime, let before = lastEvidence?.cpuTime {
            usedElsewhere = min(usedElsewhere, max(.zero, total - before))
        }
        if let delay = evidence.runDelay, let before = lastEvidence?.runDelay {
            delayedElsewhere = max(delayedElsewhere, delay - before - interval)
        }
    }

    /// How much of the settled time is known now to have passed in the queue for a CPU: the wait that is booked now
    /// lasted longer than the interval. The look that settled it did not see the wait, because the watchdog lost its
    /// own CPU between two readings.
    private func correction(_ evidence: ThreadEvidence, _ interval: Duration) -> Duration {
        guard last > began, let delay = evidence.runDelay, let before = lastEvidence?.runDelay
        else { return .zero }
        return max(.zero, min(delay - before - interval, settled.counted - settled.used))
    }

    /// A processor of a virtual machine that stands still takes the thread's time without the kernel's booking it.
    private mutating func witness(_ evidence: ThreadEvidence, at now: MonotonicInstant) {
        guard evidence.waitsForCPU else { return lastWait = nil }
        // Nothing was booked in between: it is one wait that lasts.
        if let lastWait, lastWait.cpuTime == evidence.cpuTime,
            lastWait.runDelay == evidence.runDelay
        {
            observedDelay += now - lastWait.at
        }
        lastWait = Wait(at: now, cpuTime: evidence.cpuTime, runDelay: evidence.runDelay)
    }

    /// A share of the threshold that does not matter: the kernel does not say whether a moment's wait for the CPU came
    /// just before the callout or in it.
    static func negligiblePart(of threshold: Duration) -> Duration { threshold / 64 }

    /// How much is missing to a stall, as far as it depends on whose time it was.
    func missing(to threshold: Duration) -> Duration {
        threshold - Self.negligiblePart(of: threshold) - counted
    }

    /// The loop was busy for the threshold, and all but a negligible part of it was its own doing.
    func isStall(threshold: Duration) -> Bool {
        counted + settled.uncounted + pending.uncounted >= threshold
            && missing(to: threshold) <= .zero
    }

    /// The verdict on a loop that made no progress for at least the threshold.
    package func verdict(threshold: Duration) -> StallVerdict {
        if wasTraced { return .debugger }
        if isStall(threshold: threshold) { return .stalled }
        if throttleCount > 0 { return .throttled }
        let all = settled + pending
        return all.stopped > all.uncounted / 2 ? .stopped : .starved
    }

    private func account(
        for interval: Duration, _ evidence: ThreadEvidence, suspendedInterval: Duration
    ) -> Account {
        var account = Account()
        var used = interval
        if let total = evidence.cpuTime, let before = lastEvidence?.cpuTime {
            account.cpuTime = min(interval, max(.zero, total - before))
            // What it has used for certain. Without that, time in the queue for a CPU would pass for work that was done
            // before.
            used = min(interval, max(.zero, total - before - usedElsewhere))
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

    /// The part of an interval that was the thread's own doing; at least the CPU time it used.
    private func credit(
        for interval: Duration, _ evidence: ThreadEvidence, used: Duration,
        suspendedInterval: Duration
    ) -> Duration {
        if evidence.isStopped { return used }
        let present = max(.zero, interval - suspendedInterval)
        if let delay = evidence.runDelay, let before = lastEvidence?.runDelay {
            // How long it has waited for the CPU by now is not booked yet; it may be all of the time.
            let delayed = max(delay - before - delayedElsewhere, observedDelay)
            return evidence.mayWaitForCPU ? used : max(used, present - max(.zero, delayed))
        }
        // Blocked at either end: the wait was the thread's own. Runnable at both ends, yet hardly run: starved.
        let wasRunnable = lastEvidence?.state == nil || lastEvidence?.isRunnable == true
        let isStarved = evidence.isRunnable && wasRunnable && used < interval * 3 / 4
        return isStarved ? used : max(used, present)
    }
}
