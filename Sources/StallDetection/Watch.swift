// What the watchdog's thread does: it looks at the loops whose time has come, tells what it found, and sleeps.

internal import CLinux
internal import StallModel

/// The watchdog's own state, confined to its thread.
struct Watch: ~Copyable {
    private let inbox: WatchdogInbox
    private let bell: UnsafeMutablePointer<stall_bell>
    private var posts: [Post] = []
    private let ownThread = OwnThread()
    private let sentinel: Sentinel
    private var sentinelFiles: Sentinel.Files?
    private var attendance: Attendance
    private var nextMeasure = MonotonicInstant(nanoseconds: .max)

    private static let measureInterval = Duration.seconds(60)
    /// Looks that are due this soon are done now: one wake-up serves several loops.
    private static let slack = Duration.microseconds(50)
    /// A thread that runs gets this long to answer, unless another loop is due before.
    private static let longestCapture = Duration.milliseconds(100)
    private static let shortestCapture = Duration.milliseconds(2)

    /// A loop with its detectors and with what was seen of it.
    private struct Post {
        let loop: WatchedLoop
        var policies: ModePolicies
        var detector: StallDetector
        var saturation = SaturationDetector()
        /// When to look next; nil while the loop rests.
        var nextLook: MonotonicInstant?
        var samples: [RawSample] = []
        var saturationSamples: [RawSample] = []
        var seenWord: UInt64 = 0
        var alarmedWord: UInt64?
        /// Where the stall that is open is kept for whoever comes after the process.
        var openSlot: UnsafeMutablePointer<stall_open_slot>?
        /// The beginning of the stretch of watched time that is going on.
        var measured: LoopTally
    }

    init(inbox: WatchdogInbox, bell: UnsafeMutablePointer<stall_bell>, sentinel: Sentinel) {
        self.sentinel = sentinel
        self.inbox = inbox
        self.bell = bell
        attendance = Attendance(at: MonotonicInstant(nanoseconds: stall_monotonic_ns()))
    }

    /// Returns when it is told to stop.
    mutating func run() {
        var due: MonotonicInstant?
        while true {
            guard takeRequests() else { return }
            lookAround()
            if now() >= nextMeasure { measureAll() }
            due = nextDue()
            sleep(until: due)
        }
    }

    private func now() -> MonotonicInstant { MonotonicInstant(nanoseconds: stall_monotonic_ns()) }

    /// Returns false when the end has come.
    private mutating func takeRequests() -> Bool {
        for request in inbox.takeAll() {
            switch request {
            case .watch(let loop): join(loop)
            case .setPolicies(let loop, let policies):
                for index in posts.indices where posts[index].loop === loop {
                    posts[index].policies = policies
                    loop.beacon.setStallLength(policies.base.threshold)
                }
            case .unwatch(let loop):
                for index in posts.indices where posts[index].loop === loop { leave(index) }
                posts.removeAll { $0.loop === loop }
            case .stop:
                for index in posts.indices { leave(index) }
                posts = []
                return false
            }
        }
        return true
    }

    private mutating func join(_ loop: WatchedLoop) {
        let now = now()
        loop.beacon.setStallLength(loop.policies.base.threshold)
        loop.beacon.connect(to: bell)
        let evidence = loop.responder.evidence(isSuspect: false)
        let tally = loop.beacon.tally(at: now, runDelay: evidence.runDelay)
        if posts.isEmpty { nextMeasure = now + Self.measureInterval }
        posts.append(
            Post(
                loop: loop, policies: loop.policies,
                detector: StallDetector(policy: loop.policies.base, before: evidence),
                nextLook: now + loop.policies.grace, measured: tally))
    }

    private mutating func leave(_ index: Int) {
        let loop = posts[index].loop
        // What has ended already is not ended by this.
        if posts[index].detector.suspectedWord != nil { look(at: index) }
        let evidence = loop.responder.evidence(isSuspect: true)
        let incident = posts[index].detector.stop(
            evidence, at: now(), absences: attendance.absences,
            ending: stall_last_words_is_exiting() ? .exit : .stop)
        if let incident { tell(incident, index) }
        keepOpenSlot(index, open: nil)
        if let incident = posts[index].saturation.finish(evidence, at: now()).incident {
            tell(incident, index)
        }
        measure(index)
        loop.beacon.clearAlarm()
        loop.beacon.connect(to: nil)
    }

    // MARK: Looking

    /// Looks at every loop whose time has come, and at those that have moved although nobody expected it.
    private mutating func lookAround() {
        for index in posts.indices {
            let now = now()
            let isDue =
                if let next = posts[index].nextLook {
                    next <= now + Self.slack || hasMovedOn(posts[index])
                } else {
                    posts[index].loop.beacon.word != posts[index].seenWord
                }
            if isDue { look(at: index) }
        }
    }

    private mutating func wasSentinelDisturbed() -> Bool {
        if sentinelFiles == nil { sentinelFiles = sentinel.files() }
        return sentinelFiles?.wasDisturbed() ?? false
    }

    /// The suspected word went: the stall is over.
    private func hasMovedOn(_ post: Post) -> Bool {
        post.alarmedWord != nil && post.loop.beacon.word != post.seenWord
    }

    private mutating func look(at index: Int) {
        let loop = posts[index].loop
        let beacon = loop.beacon
        let start = now()
        // What a crash reporter takes is no part of the stall, and its functions are not the app's.
        guard !stall_last_words_is_ending() || stall_last_words_is_exiting() else {
            return posts[index].nextLook = start + .seconds(1)
        }
        var reading = beacon.read(at: start)
        let rests = beacon.rests
        let suspected = posts[index].detector.suspectedWord
        if suspected == nil { posts[index].detector.policy = posts[index].policies[beacon.mode] }
        if reading.status == .busy, posts[index].detector.isSuspect(reading, at: start) {
            loop.responder.correct(reading, at: start)
            reading = beacon.read(at: start)
        }
        let end = suspected == posts[index].alarmedWord ? beacon.alarmAnswer : nil
        let evidence = loop.responder.evidence(
            isSuspect: posts[index].detector.isSuspect(reading, at: start))
        posts[index].seenWord = reading.word
        // Time is accounted for up to here: what stops the process from now on belongs to the next look.
        let now = now()
        let wasDisturbed = wasSentinelDisturbed()
        attendance.check(from: now, to: self.now(), wasDisturbed: wasDisturbed)
        let step = posts[index].detector.look(
            reading, evidence, at: now, absences: attendance.absences, end: end)
        posts[index].nextLook = posts[index].detector.nextLook
        let isStalled = posts[index].detector.isStalled || step.incident != nil
        let saturation = posts[index].saturation.look(
            reading, rests: rests, evidence, at: now, absences: attendance.absences,
            isStalled: isStalled,
            policy: posts[index].detector.policy)
        follow(saturation, index, reading)

        // What ended is told before a new suspicion collects samples of its own.
        if step.dropsSuspicion {
            if let incident = step.incident { tell(incident, index) }
            posts[index].samples = []
        }
        setAlarm(index)
        keepOpenSlot(index, open: step.incident)
        if step.takesSample {
            var sample = sample(index, reading)
            sample.isLate = beacon.word != reading.word
            posts[index].samples.append(sample)
        }
        if !step.dropsSuspicion, let incident = step.incident { tell(incident, index) }
    }

    /// Does what the detector of saturation asks for. Its samples need not be of one callout.
    private mutating func follow(_ step: StallStep, _ index: Int, _ reading: LoopReading) {
        if step.takesSample {
            posts[index].saturationSamples.append(sample(index, reading))
        }
        if let incident = step.incident { tell(incident, index) }
        if step.dropsSuspicion { posts[index].saturationSamples = [] }
    }

    private mutating func sample(_ index: Int, _ reading: LoopReading) -> RawSample {
        let beacon = posts[index].loop.beacon
        let start = now()
        var sample = RawSample(
            offset: start - reading.since, taken: start, thread: beacon.thread,
            phase: beacon.phase, mode: beacon.mode, label: beacon.label)
        switch posts[index].loop.responder.captureStack(within: captureLimit(index, at: start)) {
        case .success(let stack): sample.stack = stack
        case .failure(let error): sample.failure = String(describing: error)
        }
        sample.cost = now() - start
        return sample
    }

    /// How long a capture may take: no other loop is looked at meanwhile.
    private func captureLimit(_ index: Int, at now: MonotonicInstant) -> Duration {
        var limit = Self.longestCapture
        for other in posts.indices where other != index {
            let due = posts[other].nextLook ?? now + posts[other].policies.suspicion
            limit = min(limit, due - now)
        }
        return max(limit, Self.shortestCapture)
    }

    private func tell(_ incident: StallIncident, _ index: Int) {
        let isSaturation = incident.verdict == .saturated
        var samples = isSaturation ? posts[index].saturationSamples : posts[index].samples
        if isSaturation {
            for index in samples.indices {
                samples[index].offset = samples[index].taken - incident.began
            }
        }
        posts[index].loop.responder.stallChanged(incident, samples: samples)
    }

    /// Keeps the record of the stall that is open: while there is one, it is looked at often enough that a process that is
    /// killed loses a sixteenth of the time at most.
    private mutating func keepOpenSlot(_ index: Int, open incident: StallIncident?) {
        guard posts[index].detector.isStalled else {
            guard posts[index].openSlot != nil else { return }
            posts[index].loop.beacon.setOpenSlot(nil)
            posts[index].openSlot = nil
            return
        }
        let now = now()
        if posts[index].openSlot == nil, let incident, !incident.hasEnded {
            posts[index].openSlot = stall_last_words_open(
                incident.began.nanoseconds, now.nanoseconds)
            posts[index].loop.beacon.setOpenSlot(posts[index].openSlot)
        }
        guard let slot = posts[index].openSlot else { return }
        stall_open_slot_see(slot, now.nanoseconds)
        let elapsed = now - MonotonicInstant(nanoseconds: slot.pointee.began_ns)
        let next = now + max(.milliseconds(10), elapsed / 16)
        posts[index].nextLook = posts[index].nextLook.map { min($0, next) } ?? next
    }

    /// Keeps the alarm on the word under suspicion, if any.
    private mutating func setAlarm(_ index: Int) {
        let suspected = posts[index].detector.suspectedWord
        guard suspected != posts[index].alarmedWord else { return }
        if let suspected {
            posts[index].loop.beacon.setAlarm(on: suspected)
        } else {
            posts[index].loop.beacon.clearAlarm()
        }
        posts[index].alarmedWord = suspected
    }

    // MARK: Measuring

    /// Ends the stretch of watched time of every loop. Nobody is woken for it: while all loops rest, it lasts.
    private mutating func measureAll() {
        for index in posts.indices { measure(index) }
        nextMeasure = now() + Self.measureInterval
    }

    private mutating func measure(_ index: Int) {
        let loop = posts[index].loop
        let tally = loop.beacon.tally(
            at: now(), runDelay: loop.responder.evidence(isSuspect: false).runDelay)
        let measure = LoopMeasure(from: posts[index].measured, to: tally)
        if loop.responder.measured(measure) { posts[index].measured = tally }
    }

    // MARK: Sleeping

    /// When the next look is due; nil when every loop rests. One that rests does not ring while the watchdog sleeps
    /// until a deadline: then it is looked at before it can have become suspect.
    private func nextDue() -> MonotonicInstant? {
        guard var due = posts.lazy.compactMap(\.nextLook).min() else { return nil }
        let now = now()
        for post in posts where post.nextLook == nil {
            due = min(due, now + post.policies.suspicion)
        }
        return due
    }

    /// Sleeps unless something happened since the looks: what the loops do first, they tell only a watchdog that has
    /// announced its sleep, so each is read once more after the announcement.
    private mutating func sleep(until due: MonotonicInstant?) {
        let kind = UInt32(due == nil ? STALL_WATCHDOG_PARKED : STALL_WATCHDOG_DOZING)
        attendance.goToSleep(at: now(), ownThread.counters())
        stall_bell_announce(bell, kind)
        let moved = posts.contains { post in
            (due == nil || post.alarmedWord != nil) && post.loop.beacon.word != post.seenWord
        }
        guard inbox.isEmpty, !moved else {
            return stall_bell_announce(bell, UInt32(STALL_WATCHDOG_AWAKE))
        }
        stall_bell_sleep(bell, kind, due?.nanoseconds ?? .max)
        attendance.wake(expectedAt: due, at: now(), ownThread.counters())
    }
}
