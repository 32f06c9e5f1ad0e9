// One poll of a loop, in four steps: read, decide, report, sample.

internal import CLinux
internal import StallModel

/// A poll's reading of a loop and its thread.
private struct PollReading {
    var loop: LoopReading
    var evidence: ThreadEvidence
    /// When the evidence was read. Time is accounted for up to here.
    var at: MonotonicInstant
    /// The loop's own count of long spans.
    var stallCount: UInt64
    var rests: UInt64
    /// How long the loop was busy since the last poll: in total, and before the span that was read.
    var busy: (all: Duration, before: Duration)
    /// When the suspected span ended, if it has, and that is known.
    var end: MonotonicInstant?
    /// The beacon is known to show what the loop does.
    var isProven: Bool
    /// The suspected span was found to be several pieces of work.
    var isSplit: Bool
}

extension WatchdogThread where Kernel: ~Copyable {
    /// How long a running thread may take to answer, unless another loop is due before.
    private static var longestCapture: Duration { .milliseconds(100) }
    private static var shortestCapture: Duration { .milliseconds(2) }
    /// Reading a thread's files takes about 20 us. A reading that took longer was interrupted.
    private static var shortestLimitOfReading: Duration { .milliseconds(1) }
    private static var readings: Int { 4 }
    /// How often it is checked whether a thread is still in its crash handler.
    private static var crashInterval: Duration { .milliseconds(250) }

    mutating func poll(at slot: WatchSlot) {
        let responder = slot.loop.responder
        let start = now()
        // The time of a crash reporter is no part of the stall, and its functions are not the app's.
        let isCrashing = kernel.isCrashing(since: slot.loop.beacon.read(at: start).since)
        if isCrashing, !kernel.isExiting {
            return slot.nextPoll = start + Self.crashInterval
        }
        // The report in the store has no stack so far.
        if responder.collectLateStack() { slot.detector.refresh() }
        let (history, suspected) = (slot.detector.history, slot.detector.suspectedWord)

        let reading = read(slot, from: start)
        let step = decide(slot, reading)
        report(step, slot, reading, suspectedBefore: suspected, history)
        sample(step, slot, reading)
    }

    /// Reads the beacon, then the thread, then the suspension probe.
    ///
    /// - Parameter attempt: A loop that becomes suspect while it is read is read again, as a suspect one.
    private mutating func read(
        _ slot: WatchSlot, from start: MonotonicInstant, attempt: Int = 1
    ) -> PollReading {
        let (responder, beacon) = (slot.loop.responder, slot.loop.beacon)
        var stallCount = beacon.stallCount
        var loop = beacon.read(at: start)
        let rests = beacon.rests
        if slot.detector.suspectedWord == nil { slot.detector.policy = slot.policies[beacon.mode] }
        var (isProven, isSplit) = (true, false)
        if loop.status == .busy, slot.detector.isSuspect(loop, at: start) {
            isProven = responder.correct(loop, at: start)
            let corrected = beacon.read(at: start)
            // Not by its instant alone: the loop may have published meanwhile.
            let written = LoopReading(status: corrected.status, since: start)
            isSplit = corrected.word != loop.word && corrected.word == written.word
            loop = corrected
        }
        // Time is accounted for up to here: a stop of the process from now on belongs to the next poll.
        let isSuspect = slot.detector.isSuspect(loop, at: start)
        var (evidence, now) = evidence(of: slot, isSuspect: isSuspect)
        if !isSuspect, slot.detector.isSuspect(loop, at: now), attempt < Self.readings {
            return read(slot, from: self.now(), attempt: attempt + 1)
        }
        // If the watchdog lost its CPU meanwhile, it has read a thread that does something else by now, or one whose
        // wait for the CPU was not counted yet when it moved on.
        var attempt = attempt
        while beacon.word != loop.word, slot.detector.isSuspect(loop, at: now),
            attempt < Self.readings
        {
            loop = beacon.read(at: self.now())
            // A stall that ended meanwhile is judged by this poll, whose evidence encloses it most closely.
            stallCount = beacon.stallCount
            (evidence, now) = self.evidence(
                of: slot, isSuspect: slot.detector.isSuspect(loop, at: now))
            attempt += 1
        }
        // The span that was read is over, whatever the evidence says of the thread.
        if beacon.word != loop.word { loop = beacon.read(at: self.now()) }
        let busy = slot.busySinceLastPoll(loop, at: now)
        let end = isSplit ? nil : slot.endOfSuspicion(loop)
        slot.polledWord = loop.word
        let wasInterrupted = kernel.wasProcessInterrupted()
        suspensionTracker.check(from: now, to: self.now(), wasInterrupted: wasInterrupted)
        return PollReading(
            loop: loop, evidence: evidence, at: now, stallCount: stallCount, rests: rests,
            busy: busy, end: end, isProven: isProven, isSplit: isSplit)
    }

    /// Lets both detectors judge what was read, and carries out what follows of saturation.
    private mutating func decide(_ slot: WatchSlot, _ reading: PollReading) -> StallStep {
        let step = slot.detector.poll(
            reading.loop, reading.evidence, at: reading.at,
            suspendedIntervals: suspensionTracker.suspendedIntervals, end: reading.end,
            busyBefore: reading.busy.before, isProven: reading.isProven,
            undividedSince: slot.loop.responder.undividedSince(reading.loop, at: reading.at))
        slot.nextPoll = slot.detector.nextPoll
        let isStalled = slot.detector.isStalled || step.incident != nil
        let saturation = slot.saturation.poll(
            reading.loop, rests: reading.rests, reading.evidence, at: reading.at,
            suspendedIntervals: suspensionTracker.suspendedIntervals,
            isStalled: isStalled, policy: slot.detector.policy)
        follow(saturation, slot, reading.loop)
        return step
    }

    /// Reports what has ended, what no poll observed, and prepares for the end of what continues.
    private mutating func report(
        _ step: StallStep, _ slot: WatchSlot, _ reading: PollReading, suspectedBefore: UInt64?,
        _ history: ThreadHistory
    ) {
        // An ended stall is reported before a new suspicion collects samples of its own.
        if step.dropsSuspicion {
            if let incident = step.incident {
                slot.loop.responder.stallChanged(incident)
            } else {
                slot.forgetSuspicion()
                // A span that no poll split is counted by the loop's own thread.
                if reading.isSplit, let time = step.unprovenTime { slot.countUnproven(time) }
            }
            slot.discardSamples()
        }
        if let word = slot.detector.suspectedWord, word != suspectedBefore {
            slot.noteSuspicion(began: reading.loop.since)
        }
        slot.reportMissed(
            upTo: reading.stallCount, history: history, busy: reading.busy.all, reading.evidence,
            at: reading.at, suspendedIntervals: suspensionTracker.suspendedIntervals)
        slot.setAlarm()
        slot.updateOpenSlot(at: now(), open: step.incident, processRecord)
    }

    /// Samples a stall that continues, and then reports it.
    private mutating func sample(_ step: StallStep, _ slot: WatchSlot, _ reading: PollReading) {
        if step.takesSample {
            slot.sampleCount += 1
            slot.loop.responder.takeSample(.stall, of: reading.loop, within: captureLimit(slot))
        }
        guard !step.dropsSuspicion, let incident = step.incident else { return }
        slot.loop.responder.stallChanged(incident)
    }

    /// The kernel's evidence about a loop's thread, with the time of the reading: one instant, as far as possible.
    ///
    /// If the watchdog loses its CPU between two readings, a wait for the CPU that begins meanwhile would count as
    /// work. If that happens repeatedly, only the CPU time is used until the next poll.
    private func evidence(
        of slot: WatchSlot, isSuspect: Bool
    ) -> (ThreadEvidence, MonotonicInstant) {
        let threshold = slot.detector.policy.threshold
        let limit = max(StallClock.negligiblePart(of: threshold), Self.shortestLimitOfReading)
        var attempt = 0
        while true {
            let began = now()
            slot.noteBusyTime(at: began)
            var evidence = slot.loop.responder.evidence(isSuspect: isSuspect)
            let ended = now()
            if !isSuspect || ended - began <= limit { return (evidence, ended) }
            attempt += 1
            if attempt == Self.readings {
                evidence.isSpread = true
                return (evidence, ended)
            }
        }
    }

    /// Carries out a step of the saturation detector. Its samples need not be of one callout.
    private func follow(_ step: StallStep, _ slot: WatchSlot, _ reading: LoopReading) {
        if step.takesSample {
            slot.saturationSampleCount += 1
            slot.loop.responder.takeSample(.saturation, of: reading, within: captureLimit(slot))
        }
        if let incident = step.incident { slot.loop.responder.stallChanged(incident) }
        if step.dropsSuspicion { slot.discardSaturationSamples() }
    }

    /// How long a capture may take: no loop is polled meanwhile. A late answer is as good, and the stall must be
    /// noticed in time.
    private func captureLimit(_ slot: WatchSlot) -> Duration {
        let now = now()
        var limit = Self.longestCapture
        if let threshold = slot.detector.unreachedThreshold { limit = min(limit, threshold - now) }
        var other = first
        while let current = other {
            if current !== slot {
                let due = current.nextPoll ?? now + current.policies.suspicion
                limit = min(limit, due - now)
            }
            other = current.next
        }
        return max(limit, Self.shortestCapture)
    }
}
