// The watchdog's thread: polls the loops that are due, reports what it found, and sleeps.
//
// Nothing here allocates or frees, and no lock is taken that a thread of the app can hold: a watchdog that can be
// blocked by what it watches is not a watchdog. Other threads allocate and free slots and requests
// (WatchdogInbox.swift).

internal import CLinux
internal import StallModel

/// The watchdog's own state, confined to its thread.
struct WatchdogThread: ~Copyable {
    private let inbox: WatchdogInbox
    private let wakeup: UnsafeMutablePointer<stall_wakeup>
    private let pulse: WatchdogPulse
    private let processRecord: ProcessRecordEntry
    /// The first slot of a linked list.
    private var first: WatchSlot?
    private var ownThread = SchedulerStatistics()
    private let suspensionProbe: SuspensionProbe
    private var suspensionProbeFiles: SuspensionProbe.Files?
    private var suspensionTracker: SuspensionTracker
    private var nextMeasure = MonotonicInstant(nanoseconds: .max)
    /// The oldest request that was taken from the inbox and not looked at.
    private var unread: WatchdogInbox.Entry?

    private static let measureInterval = Duration.seconds(60)
    /// Polls that are due this soon are done now: one wake-up serves several loops.
    private static let slack = Duration.microseconds(50)
    /// How long a running thread may take to answer, unless another loop is due before.
    private static let longestCapture = Duration.milliseconds(100)
    private static let shortestCapture = Duration.milliseconds(2)
    /// Reading a thread's files takes about 20 us. A reading that took longer was interrupted.
    private static let shortestLimitOfReading = Duration.milliseconds(1)
    private static let readings = 4
    /// How long requests are received before the loops that are due are polled.
    private static let longestReceipt = Duration.milliseconds(5)
    /// How often it is checked whether a thread is still in its crash handler.
    private static let crashInterval = Duration.milliseconds(250)

    init(
        inbox: WatchdogInbox, wakeup: UnsafeMutablePointer<stall_wakeup>,
        suspensionProbe: SuspensionProbe,
        pulse: WatchdogPulse, monitor: Int32, createdAt: MonotonicInstant
    ) {
        processRecord = ProcessRecordEntry(monitor: monitor, wakeup: wakeup)
        self.suspensionProbe = suspensionProbe
        self.inbox = inbox
        self.wakeup = wakeup
        self.pulse = pulse
        suspensionTracker = SuspensionTracker(at: createdAt)
    }

    /// Returns when it receives a stop request.
    mutating func run() {
        var due: MonotonicInstant?
        warmUp()
        while true {
            pulse.expect(at: now())
            guard receiveRequests() else { return pulse.expect(at: nil) }
            pollAll()
            if now() >= nextMeasure { measureAll() }
            due = nextDue()
            sleep(until: due)
        }
    }

    /// Runs a simulated stall through detectors of its own, so that the runtime creates its metadata at first use now,
    /// not during a stall.
    private mutating func warmUp() {
        let policy = DetectionPolicy(threshold: .milliseconds(100))
        var (detector, saturation) = (StallDetector(policy: policy), SaturationDetector())
        let (start, evidence) = (now(), ThreadEvidence(cpuTime: .zero, runDelay: .zero))
        // Loops are watched from the creation on, and the process may have been stopped before this thread ran.
        let wasInterrupted = wasProbeInterrupted()
        suspensionTracker.check(from: start, to: now(), wasInterrupted: wasInterrupted)
        for status in [LoopStatus.busy, .busy, .waiting] {
            let reading = LoopReading(status: status, since: start)
            let poll = start + (status == .busy ? .seconds(5) : .seconds(6))
            _ = detector.poll(
                reading, evidence, at: poll,
                suspendedIntervals: suspensionTracker.suspendedIntervals)
            _ = saturation.poll(
                reading, rests: 0, evidence, at: poll,
                suspendedIntervals: suspensionTracker.suspendedIntervals,
                isStalled: false, policy: policy)
        }
    }

    private func now() -> MonotonicInstant { MonotonicInstant(nanoseconds: stall_monotonic_ns()) }

    /// Returns false after a stop request.
    private mutating func receiveRequests() -> Bool {
        var isRunning = true
        let end = now() + Self.longestReceipt
        while let entry = unread ?? inbox.takeAll() {
            unread = inbox.next(after: entry)
            switch entry.request {
            case .watch(let slot):
                inbox.releaseWatch()
                if isRunning, slot.loop.take() { add(slot) }
            case .setPolicies(let loop, let policies):
                entry.retiredPolicies = setPolicies(policies, of: loop)
            case .unwatch(let loop): entry.retired = remove(loop)
            case .stop:
                entry.retired = removeAll()
                isRunning = false
            }
            inbox.retire(entry)
            // The loops that are due come first; the rest of the requests waits for the next round.
            if isRunning, now() >= end { return true }
        }
        return isRunning
    }

    /// Returns the previous policies, because they must not be freed here.
    private func setPolicies(_ policies: ModePolicies, of loop: WatchedLoop) -> ModePolicies? {
        var slot = first
        while let current = slot {
            if current.loop === loop {
                let before = current.policies
                current.policies = policies
                loop.beacon.connect(to: wakeup, stallLength: policies.base.threshold)
                return before
            }
            slot = current.next
        }
        return nil
    }

    private mutating func add(_ slot: WatchSlot) {
        let now = now()
        let loop = slot.loop
        loop.beacon.connect(to: wakeup, stallLength: slot.policies.base.threshold)
        loop.responder.prepare()
        let evidence = loop.responder.evidence(isSuspect: false)
        if first == nil { nextMeasure = now + Self.measureInterval }
        slot.detector = StallDetector(policy: slot.policies.base, before: evidence)
        slot.nextPoll = now + slot.policies.grace
        slot.stallsBeforeEvidence = loop.beacon.stallCount
        _ = slot.busySinceLastPoll(loop.beacon.read(at: now), at: now)
        slot.measured = slot.counters(at: now, runDelay: evidence.runDelay)
        slot.next = first
        first = slot
    }

    /// Ends the watch of a loop and unlinks its slot. The thread that frees the request frees the slot.
    private mutating func remove(_ loop: WatchedLoop) -> WatchSlot? {
        var previous: WatchSlot?
        var slot = first
        while let current = slot {
            if current.loop === loop {
                if let previous { previous.next = current.next } else { first = current.next }
                current.next = nil
                remove(current)
                return current
            }
            previous = current
            slot = current.next
        }
        return nil
    }

    private mutating func removeAll() -> WatchSlot? {
        var slot = first
        while let current = slot {
            remove(current)
            slot = current.next
        }
        let all = first
        first = nil
        return all
    }

    private mutating func remove(_ slot: WatchSlot) {
        let loop = slot.loop
        // A stall that has ended already must end with its own time.
        if slot.detector.suspectedWord != nil { poll(at: slot) }
        _ = loop.responder.collectLateStack()
        let evidence = loop.responder.evidence(isSuspect: true)
        let incident = slot.detector.stop(
            evidence, at: now(), suspendedIntervals: suspensionTracker.suspendedIntervals,
            ending: stall_process_record_is_exiting() ? .exit : .stop)
        if let incident { loop.responder.stallChanged(incident) }
        slot.updateOpenSlot(at: now(), open: nil, processRecord)
        if let incident = slot.saturation.finish(evidence, at: now()).incident {
            loop.responder.stallChanged(incident)
        }
        slot.measure(at: now())
        loop.beacon.clearAlarm()
        loop.beacon.disconnect(from: wakeup)
        loop.responder.unwatched()
    }

    // MARK: Polling

    /// Polls every loop that is due, and every loop that moved unexpectedly.
    private mutating func pollAll() {
        var slot = first
        while let current = slot {
            let now = now()
            let isDue =
                if let next = current.nextPoll {
                    next <= now + Self.slack || current.hasMovedOn
                } else {
                    current.loop.beacon.word != current.polledWord
                }
            if isDue { poll(at: current) }
            slot = current.next
        }
    }

    /// True also as long as it has not started: on a busy machine the process may be stopped before.
    private mutating func wasProbeInterrupted() -> Bool {
        if suspensionProbeFiles == nil { suspensionProbeFiles = suspensionProbe.files() }
        return suspensionProbeFiles?.wasInterrupted() ?? true
    }

    private mutating func poll(at slot: WatchSlot) {
        let responder = slot.loop.responder
        let beacon = slot.loop.beacon
        let start = now()
        // The time of a crash reporter is no part of the stall, and its functions are not the app's.
        let isCrashing = stall_crash_note_covers(beacon.read(at: start).since.nanoseconds)
        if isCrashing, !stall_process_record_is_exiting() {
            return slot.nextPoll = start + Self.crashInterval
        }
        // The report in the store has no stack so far.
        if responder.collectLateStack() { slot.detector.refresh() }
        let history = slot.detector.history
        var stallCount = beacon.stallCount
        var reading = beacon.read(at: start)
        let rests = beacon.rests
        let suspected = slot.detector.suspectedWord
        if suspected == nil { slot.detector.policy = slot.policies[beacon.mode] }
        var (isProven, isSplit) = (true, false)
        if reading.status == .busy, slot.detector.isSuspect(reading, at: start) {
            isProven = responder.correct(reading, at: start)
            let corrected = beacon.read(at: start)
            isSplit = corrected.word != reading.word && corrected.since == start
            reading = corrected
        }
        // Time is accounted for up to here: a stop of the process from now on belongs to the next poll.
        let threshold = slot.detector.policy.threshold
        var (evidence, now) = evidence(
            of: responder, isSuspect: slot.detector.isSuspect(reading, at: start),
            threshold: threshold)
        // If the watchdog lost its CPU meanwhile, it has read a thread that does something else by now, or one whose
        // wait for the CPU was not counted yet when it moved on.
        var attempt = 1
        while beacon.word != reading.word, slot.detector.isSuspect(reading, at: now),
            attempt < Self.readings
        {
            reading = beacon.read(at: self.now())
            // A stall that ended meanwhile is judged by this poll, whose evidence encloses it most closely.
            stallCount = beacon.stallCount
            (evidence, now) = self.evidence(
                of: responder, isSuspect: slot.detector.isSuspect(reading, at: now),
                threshold: threshold)
            attempt += 1
        }
        let end = suspected == slot.alarmedWord ? beacon.alarmAnswer : nil
        slot.polledWord = reading.word
        let wasInterrupted = wasProbeInterrupted()
        suspensionTracker.check(from: now, to: self.now(), wasInterrupted: wasInterrupted)
        let busy = slot.busySinceLastPoll(reading, at: now)
        let step = slot.detector.poll(
            reading, evidence, at: now, suspendedIntervals: suspensionTracker.suspendedIntervals,
            end: end,
            busyBefore: busy.before, isProven: isProven,
            undividedSince: responder.undividedSince(reading, at: now))
        slot.nextPoll = slot.detector.nextPoll
        let isStalled = slot.detector.isStalled || step.incident != nil
        let saturation = slot.saturation.poll(
            reading, rests: rests, evidence, at: now,
            suspendedIntervals: suspensionTracker.suspendedIntervals,
            isStalled: isStalled, policy: slot.detector.policy)
        follow(saturation, slot, reading)

        // An ended stall is reported before a new suspicion collects samples of its own.
        if step.dropsSuspicion {
            if let incident = step.incident {
                responder.stallChanged(incident)
            } else {
                slot.forgetSuspicion()
                // A span that no poll split is counted by the loop's own thread.
                if isSplit, let time = step.unprovenTime { slot.countUnproven(time) }
            }
            slot.discardSamples()
        }
        if let word = slot.detector.suspectedWord, word != suspected {
            slot.noteSuspicion(began: reading.since)
        }
        slot.reportMissed(
            upTo: stallCount, history: history, busy: busy.all, evidence, at: now,
            suspendedIntervals: suspensionTracker.suspendedIntervals)
        slot.setAlarm()
        slot.updateOpenSlot(at: self.now(), open: step.incident, processRecord)
        if step.takesSample {
            slot.sampleCount += 1
            responder.takeSample(.stall, of: reading, within: captureLimit(slot))
        }
        if !step.dropsSuspicion, let incident = step.incident { responder.stallChanged(incident) }
    }

    /// The kernel's evidence about a loop's thread, with the time of the reading: one instant, as far as possible.
    ///
    /// If the watchdog loses its CPU between two readings, a wait for the CPU that begins meanwhile would count as
    /// work. If that happens repeatedly, only the CPU time is used until the next poll.
    private func evidence(
        of responder: any StallResponder, isSuspect: Bool, threshold: Duration
    ) -> (ThreadEvidence, MonotonicInstant) {
        let limit = max(StallClock.negligiblePart(of: threshold), Self.shortestLimitOfReading)
        var attempt = 0
        while true {
            let began = now()
            var evidence = responder.evidence(isSuspect: isSuspect)
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

    // MARK: Measuring

    /// Ends the interval of watched time of every loop. It wakes no thread: while all loops wait, the interval lasts.
    private mutating func measureAll() {
        var slot = first
        while let current = slot {
            current.measure(at: now())
            slot = current.next
        }
        nextMeasure = now() + Self.measureInterval
    }

    // MARK: Sleeping

    /// When the next poll is due; nil if every loop waits. A waiting loop does not wake the watchdog while it sleeps
    /// until a deadline, so the loop is polled before it can have become suspect.
    private func nextDue() -> MonotonicInstant? {
        var earliest: MonotonicInstant?
        var shortest: Duration?
        var slot = first
        while let current = slot {
            if let next = current.nextPoll {
                earliest = min(earliest ?? next, next)
            } else {
                let suspicion = current.policies.suspicion
                shortest = min(shortest ?? suspicion, suspicion)
            }
            slot = current.next
        }
        guard let earliest else { return nil }
        return shortest.map { min(earliest, now() + $0) } ?? earliest
    }

    /// Sleeps unless something happened since the polls. Loops signal only a watchdog that has announced its sleep, so
    /// each beacon is read once more after the announcement.
    private mutating func sleep(until due: MonotonicInstant?) {
        let kind = UInt32(due == nil ? STALL_WATCHDOG_WAITING : STALL_WATCHDOG_TIMED_WAIT)
        pulse.expect(at: due)
        suspensionTracker.goToSleep(at: now(), ownThread.counters())
        stall_wakeup_prepare(wakeup, kind)
        guard unread == nil, inbox.isEmpty, !hasAnyMoved(due) else {
            return stall_wakeup_prepare(wakeup, UInt32(STALL_WATCHDOG_AWAKE))
        }
        stall_wakeup_wait(wakeup, kind, due?.nanoseconds ?? .max)
        suspensionTracker.wake(expectedAt: due, at: now(), ownThread.counters())
    }

    private func hasAnyMoved(_ due: MonotonicInstant?) -> Bool {
        var slot = first
        while let current = slot {
            let counts = due == nil || current.alarmedWord != nil
            if counts, current.loop.beacon.word != current.polledWord { return true }
            slot = current.next
        }
        return false
    }
}
