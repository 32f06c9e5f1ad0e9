// The watchdog's thread: polls the loops that are due, reports what it found, and sleeps.
//
// Nothing here allocates or frees, and no lock is taken that a thread of the app can hold: a watchdog that can be
// blocked by what it watches is not a watchdog. Other threads allocate and free slots and requests
// (WatchdogInbox.swift).

internal import CLinux
internal import StallModel

/// The watchdog's own state, confined to its thread.
struct WatchdogThread<Kernel: WatchdogKernel & ~Copyable>: ~Copyable {
    var kernel: Kernel
    private let inbox: WatchdogInbox
    private let wakeup: UnsafeMutablePointer<stall_wakeup>
    private let pulse: WatchdogPulse
    let processRecord: ProcessRecordEntry
    /// The first slot of a linked list.
    var first: WatchSlot?
    var suspensionTracker: SuspensionTracker
    private var nextMeasure = MonotonicInstant(nanoseconds: .max)
    /// The oldest request that was taken from the inbox and not looked at.
    private var unread: WatchdogInbox.Entry?

    private static var measureInterval: Duration { .seconds(60) }
    /// Polls that are due this soon are done now: one wake-up serves several loops.
    private static var slack: Duration { .microseconds(50) }
    /// How long requests are received before the loops that are due are polled.
    private static var longestReceipt: Duration { .milliseconds(5) }

    init(
        kernel: consuming Kernel, inbox: WatchdogInbox, wakeup: UnsafeMutablePointer<stall_wakeup>,
        pulse: WatchdogPulse, monitor: Int32, createdAt: MonotonicInstant
    ) {
        self.kernel = kernel
        processRecord = ProcessRecordEntry(monitor: monitor, wakeup: wakeup)
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
        let wasInterrupted = kernel.wasProcessInterrupted()
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

    func now() -> MonotonicInstant { kernel.now() }

    /// Returns false after a stop request.
    private mutating func receiveRequests() -> Bool {
        var (isRunning, frees) = (true, false)
        // After the entry is retired: the end of a watch has woken the recorder before.
        defer { if frees { inbox.wakeCollector() } }
        let end = now() + Self.longestReceipt
        while let entry = unread ?? inbox.takeAll() {
            unread = inbox.next(after: entry)
            switch entry.request {
            case .watch(let slot):
                inbox.releaseWatch()
                if isRunning, slot.loop.take() { add(slot) } else { frees = true }
            case .setPolicies(let loop, let policies):
                entry.retiredPolicies = setPolicies(policies, of: loop)
            case .unwatch(let loop):
                entry.retired = remove(loop)
                frees = true
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
        slot.noteBusyTime(at: now)
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
        // A stall that has ended already must end with its own time, and one that no poll observed is judged.
        if slot.detector.suspectedWord != nil || loop.beacon.stallCount != slot.knownStalls {
            poll(at: slot)
        }
        _ = loop.responder.collectLateStack()
        let evidence = loop.responder.evidence(isSuspect: true)
        let incident = slot.detector.stop(
            evidence, at: now(), suspendedIntervals: suspensionTracker.suspendedIntervals,
            ending: kernel.isExiting ? .exit : .stop)
        if let incident { loop.responder.stallChanged(incident) }
        slot.updateOpenSlot(at: now(), open: nil, processRecord)
        if let incident = slot.saturation.finish(evidence, at: now()).incident {
            loop.responder.stallChanged(incident)
        }
        slot.measure(at: now(), isLast: true)
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
        // Counters before time: a wait for the CPU between the two is no pause of the machine.
        let counters = kernel.ownCounters()
        suspensionTracker.goToSleep(at: now(), counters)
        stall_wakeup_prepare(wakeup, kind)
        guard unread == nil, inbox.isEmpty, !hasAnyMoved(due) else {
            return stall_wakeup_prepare(wakeup, UInt32(STALL_WATCHDOG_AWAKE))
        }
        kernel.sleep(on: wakeup, kind, until: due)
        suspensionTracker.wake(expectedAt: due, at: now(), kernel.ownCounters())
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
