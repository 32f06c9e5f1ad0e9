// Answers the watchdog's queries about one loop's thread, and hands the results to the recorder. Everything here runs
// on the watchdog's thread, while the loop's thread may hold any lock of the app, the heap's included: nothing may be
// allocated, freed or waited for. IncidentAssembly.swift decodes the records.

internal import CLinux
internal import StallCapture
internal import StallCause
internal import StallDetection
internal import StallModel
internal import Synchronization

/// The path from the watchdog to the recorder.
struct Handover: @unchecked Sendable {
    // Unchecked because of the wake-up word, which is a futex and is never freed.
    let ring: HandoverRing
    let wakeup: UnsafeMutablePointer<stall_wakeup>

    /// Room that samples leave for the begins and ends of stalls.
    static let reserve = 128 << 10
}

/// One watched loop: the adapter between watchdog and recorder.
final class TargetMonitor: StallResponder, @unchecked Sendable {
    // Unchecked because only the watchdog's thread calls it after `init`; `assembly` is the recorder's.
    private let target: any MonitoredTarget
    private let beacon: LoopBeacon
    private let sampler: SharedSampler?
    private let handover: Handover
    private let threads: StallMonitor.ThreadScope
    private var account: ThreadCounters
    private var causes: EvidenceCollector
    /// The threshold that was exceeded last; recorded with intervals of watched time.
    private var threshold: Duration
    /// The incidents reported so far; a loop may be saturated while one of its callouts is stalled.
    private var reported = (stall: MonotonicInstant?.none, saturation: MonotonicInstant?.none)
    /// The word under suspicion when the thread was requested for its stack and did not answer; nil without such a request.
    private var awaitedWord: UInt64?
    /// The sample that is being taken leads through an image that the recorder may not know yet.
    private var showsNewImage = false
    /// The end of a stall that could not be handed over yet.
    private var unsent: IncidentRecord?
    private let suspicions: SuspicionCell
    /// The callout whose suspicion was announced last.
    private var announced: MonotonicInstant?
    /// The next of the loops whose end did not fit into the ring.
    private(set) var nextUnannounced: UInt = 0
    /// The recorder's state of this loop.
    let assembly: IncidentAssembly

    init(
        name: String, threshold: Duration, target: any MonitoredTarget, beacon: LoopBeacon,
        sampler: SharedSampler?, controlGroup: ControlGroup, handover: Handover,
        threads: StallMonitor.ThreadScope, suspicions: SuspicionCell
    ) {
        self.threshold = threshold
        self.target = target
        self.beacon = beacon
        self.sampler = sampler
        self.handover = handover
        self.threads = threads
        self.suspicions = suspicions
        assembly = IncidentAssembly(
            name: name, thread: target.openWorkThread, suspicions: suspicions,
            modeName: { target.modeName($0) })
        account = ThreadCounters(target, controlGroup)
        causes = EvidenceCollector(process: sampler?.process ?? ProcessEvidence(controlGroup))
    }

    private var ring: HandoverRing { handover.ring }
    /// Identifies this loop in its records. The recorder owns a reference from the first record to the last.
    private var sender: UInt { UInt(bitPattern: Unmanaged.passUnretained(self).toOpaque()) }
    private var now: MonotonicInstant { MonotonicInstant(nanoseconds: stall_monotonic_ns()) }

    /// Opens the thread's files. For the first target of its kind also runs all steps of a stall once, so that the
    /// Swift runtime creates its metadata at first use now.
    func prepare() {
        _ = Unmanaged.passRetained(self)
        let kind = ObjectIdentifier(type(of: target))
        guard !WarmKinds.contains(kind) else {
            _ = account.evidence(isSuspect: false, isAsked: false)
            if let thread = account.thread { causes.follow(thread) }
            return
        }
        _ = account.evidence(isSuspect: true, isAsked: false)
        warmUp()
        // Without a thread not all of the steps were run.
        if sampler != nil, account.thread != nil { WarmKinds.insert(kind) }
    }

    private func warmUp() {
        ring.begin()
        let reading = beacon.read(at: now)
        addSample(.stall, of: reading, within: .zero)
        var record = incidentRecord(.warmUp(at: now))
        causes.lastPoll(&record)
        ring.append(.incident, record, from: sender)
        addMeasure(
            from: beacon.counters(at: now, runDelay: nil),
            to: beacon.counters(at: now, runDelay: nil))
        if let sampler, let thread = account.thread {
            causes.warmUp(thread.id, into: ring, from: sender, sampler: sampler)
            let stack = sampler.copyStack(of: thread, within: .zero)
            ring.append(
                .thread,
                ThreadRecord(role: .other, name: ShortText(), stack: stack.header), from: sender)
        }
        ring.append(.round, RoundRecord(skippedCount: 0, cost: .zero), from: sender)
        let empty = StackCopy(ThreadID(rawValue: 0), failure: .running(ThreadID(rawValue: 0)))
        ring.append(
            .late, LateRecord(requested: now, answered: now, isLate: false, stack: empty.header),
            from: sender)
        ring.append(.discard, DiscardRecord(kind: .stall), from: sender)
        ring.append(.unwatched, UnwatchedRecord(), from: sender)
        target.forEachMember { _ in }
        addOpenWork()
        // Nothing of it is committed.
    }

    func correct(_ reading: LoopReading, at now: MonotonicInstant) -> Bool {
        target.correct(reading.word, at: now)
    }

    var isExact: Bool { target.isExact }
    func undividedSince(_ reading: LoopReading, at now: MonotonicInstant) -> MonotonicInstant? {
        target.undividedSince(reading.word, at: now)
    }

    func evidence(isSuspect: Bool) -> ThreadEvidence {
        account.evidence(isSuspect: isSuspect, isAsked: beacon.isBusy)
    }

    func takeSample(_ kind: IncidentKind, of reading: LoopReading, within limit: Duration) {
        if kind == .stall, announced != reading.since {
            announced = reading.since
            suspicions.announce(reading.since)
        }
        sendUnsent()
        _ = collectLateStack()
        ring.begin(reserve: Handover.reserve)
        addSample(kind, of: reading, within: limit)
        // If a sample does not fit, the report lacks it; room is reserved for the report itself. The recorder remembers
        // new images before they can be unloaded.
        if ring.commit(), ring.load > 12 || showsNewImage { stall_wakeup_signal(handover.wakeup) }
        showsNewImage = false
    }

    private func addSample(_ kind: IncidentKind, of reading: LoopReading, within limit: Duration) {
        let start = now
        var record = SampleRecord(
            kind: kind, offset: start - reading.since, taken: start, isLate: false,
            thread: beacon.thread, phase: beacon.phase, mode: beacon.mode, label: ShortText(),
            cost: .zero, status: .noSampler, stack: nil)
        record.label.fill { target.readLabel(of: beacon, into: $0) }
        guard let sampler, let thread = account.thread else {
            record.status = sampler == nil ? .noSampler : .noThread
            record.isLate = beacon.word != reading.word
            return ring.append(.sample, record, from: sender)
        }
        let stack = sampler.copyStack(of: thread, within: limit)
        record.status = .captured
        record.stack = stack.header
        if stack.comesLater { awaitedWord = reading.word }
        showsNewImage = stack.showsNewImage
        // The thread answers when it gets a CPU, and the watchdog sees the answer when it gets one: the loop may make
        // progress in between.
        let hasMoved = beacon.word != reading.word
        record.isLate =
            kind == .stall && stack.hasFrames
            ? beacon.hasLeft(reading.word, by: stack.header.taken) : hasMoved
        record.cost = now - start
        ring.append(.sample, record, from: sender, stack.frames)
        // The thread does something else by now.
        if hasMoved, !record.isLate { return }
        causes.observe(thread, into: ring, from: sender, sampler: sampler)
    }

    func collectLateStack() -> Bool {
        guard let word = awaitedWord, let thread = account.thread,
            let late = sampler?.copyLateStack(of: thread)
        else { return false }
        awaitedWord = nil
        ring.begin(reserve: Handover.reserve)
        ring.append(
            .late,
            LateRecord(
                requested: late.requested, answered: late.answered,
                isLate: beacon.hasLeft(word, by: late.answered), stack: late.stack.header),
            from: sender, late.stack.frames)
        return ring.commit()
    }

    func discardSamples(_ kind: IncidentKind) {
        ring.begin()
        ring.append(.discard, DiscardRecord(kind: kind), from: sender)
        _ = ring.commit()
    }

    func stallChanged(_ incident: StallIncident) {
        sendUnsent()
        let kind: IncidentKind = incident.verdict == .saturated ? .saturation : .stall
        threshold = incident.threshold
        if isNew(incident, kind), !incident.hasEnded {
            captureOthers()
            sendOpenWork()
        }
        var record = incidentRecord(incident)
        causes.lastPoll(&record)
        if !send(record), incident.hasEnded {
            if unsent != nil { ring.countDropped() }
            unsent = record
        }
    }

    /// Other threads are captured once per incident, while it lasts.
    private func isNew(_ incident: StallIncident, _ kind: IncidentKind) -> Bool {
        switch kind {
        case .stall:
            defer { reported.stall = incident.hasEnded ? nil : incident.began }
            return reported.stall != incident.began
        case .saturation:
            defer { reported.saturation = incident.hasEnded ? nil : incident.began }
            return reported.saturation != incident.began
        }
    }

    private func incidentRecord(_ incident: StallIncident) -> IncidentRecord {
        IncidentRecord(
            kind: incident.verdict == .saturated ? .saturation : .stall, incident: incident,
            start: wallClock(at: incident.began), thread: stall_thread_snapshot(),
            process: ProcessSnapshot(), lastPoll: now)
    }

    private func send(_ record: IncidentRecord) -> Bool {
        ring.begin()
        ring.append(.incident, record, from: sender)
        let isSent = ring.commit()
        stall_wakeup_signal(handover.wakeup)
        return isSent
    }

    private func sendUnsent() {
        if let record = unsent, send(record) { unsent = nil }
    }

    private func captureOthers() {
        guard let sampler else { return }
        let start = now
        var count = 0
        target.forEachMember { member in
            guard count < 64 else { return }
            count += 1
            send(sampler.copyStack(of: member, within: .milliseconds(10)), .member)
        }
        guard threads == .all else { return }
        let skipped = sampler.visitThreads(except: account.thread?.id) { send($0, .other) }
        ring.begin(reserve: Handover.reserve)
        ring.append(.round, RoundRecord(skippedCount: skipped, cost: now - start), from: sender)
        _ = ring.commit()
    }

    private func sendOpenWork() {
        ring.begin(reserve: Handover.reserve)
        addOpenWork()
        _ = ring.commit()
    }

    private func addOpenWork() {
        var task = target.currentTask
        // Not Optional.map, whose first use makes the metadata of a function's type, in the heap.
        if task == 0, let thread = account.thread { task = stall_jobs_task_on(thread.id.rawValue) }
        let items = causes.copyOpenWork(thread: target.openWorkThread, task: task)
        ring.append(.openWork, OpenWorkRecord(at: now, task: task), from: sender, items)
    }

    private func send(_ stack: StackCopy, _ role: ThreadRole) {
        var record = ThreadRecord(role: role, name: ShortText(), stack: stack.header)
        record.name.fill { _ = stall_thread_read_name(stack.header.thread.rawValue, $0) }
        ring.begin(reserve: Handover.reserve)
        ring.append(.thread, record, from: sender, stack.frames)
        _ = ring.commit()
    }

    func measured(from first: LoopCounters, to last: LoopCounters) -> Bool {
        sendUnsent()
        ring.begin(reserve: Handover.reserve)
        addMeasure(from: first, to: last)
        let isSent = ring.commit()
        if isSent { stall_wakeup_signal(handover.wakeup) }
        return isSent
    }

    private func addMeasure(from first: LoopCounters, to last: LoopCounters) {
        ring.append(
            .measure,
            MeasureRecord(
                first: first, last: last, threshold: threshold, start: wallClock(at: first.at)),
            from: sender)
    }

    func unwatched() {
        sendUnsent()
        if unsent != nil { ring.countDropped() }
        ring.begin()
        ring.append(.unwatched, UnwatchedRecord(), from: sender)
        if !ring.commit() { ring.addUnannounced(sender) { nextUnannounced = $0 } }
        stall_wakeup_signal(handover.wakeup)
    }

    private func wallClock(at instant: MonotonicInstant) -> UnixTime {
        let age = now - instant
        return UnixTime(microseconds: stall_unix_us() - age.nanoseconds / 1000)
    }
}

extension StallIncident {
    /// An incident that is never reported.
    fileprivate static func warmUp(at now: MonotonicInstant) -> StallIncident {
        StallIncident(
            began: now, duration: .zero, threshold: .zero, cpuTime: .zero, detectionDelay: .zero,
            verdict: .stalled, hasEnded: false)
    }
}

/// The kinds of targets for which all steps of a stall have been run in this process.
private enum WarmKinds {
    /// There are fewer kinds than elements.
    private static let known = InlineArray<16, Atomic<UInt>> { _ in Atomic(0) }

    static func contains(_ kind: ObjectIdentifier) -> Bool {
        let wanted = UInt(bitPattern: kind)
        // Not by `contains(where:)`, which allocates in a debug build.
        for index in known.indices where known[index].load(ordering: .relaxed) == wanted {
            return true
        }
        return false
    }

    static func insert(_ kind: ObjectIdentifier) {
        let wanted = UInt(bitPattern: kind)
        for index in known.indices {
            let (isDone, other) = known[index].compareExchange(
                expected: 0, desired: wanted, ordering: .relaxed)
            if isDone || other == wanted { return }
        }
    }
}
