// Decodes the records of one loop. Runs on the recorder's thread, which may allocate and wait.

internal import CLinux
internal import StallCapture
internal import StallCause
internal import StallDetection
internal import StallModel

/// A stall on its way to the store, before symbolication.
struct PendingReport: Sendable {
    let id: UniqueID
    let start: UnixTime
    let loop: String
    let mode: String
    let incident: StallIncident
    var samples: [RawSample]
    /// The threads of the pool that runs the work, if it is a pool's.
    var members: [CapturedThread]
    /// The app's other threads, if all are configured.
    var others: ThreadRound
    let othersCost: Duration
    var evidenceLog: EvidenceLog
    /// The thread that stalled; nil if unknown.
    let thread: ThreadID?
    /// The task that stalled, by its address; 0 if unknown.
    let task: UInt64
    /// Requests and spans that were open when it was first reported.
    let openWork: [OpenWork]
    /// The facts that the app's hooks added so far, and its scope of blocking that is meant.
    var context: [CauseEvidence]
    /// The call that it is of, instead of a stall.
    var call: ForbiddenCall?
}

/// An interval of a loop's watched time on its way to the store.
struct PendingMeasure: Sendable {
    let loop: String
    let threshold: Duration
    let start: UnixTime
    let measure: LoopMeasure
}

/// The records of one loop that were received but not reported yet.
final class IncidentAssembly: @unchecked Sendable {
    // Unchecked because only the recorder's thread touches it after `init`.
    private let name: String
    /// The thread that all work runs on; nil if it may be any.
    private let thread: ThreadID?
    private let suspicions: SuspicionCell
    private let modeName: (UInt32) -> String?
    private var seen: [IncidentKind: Seen] = [:]
    private var open: [IncidentKind: OpenStall] = [:]
    private var others = Others()
    /// The kind of the last sample; its observation and suspects follow it.
    private var last = IncidentKind.stall
    private var owners: [ThreadID: LockOwner] = [:]

    init(
        name: String, thread: ThreadID?, suspicions: SuspicionCell,
        modeName: @escaping (UInt32) -> String?
    ) {
        self.name = name
        self.thread = thread
        self.suspicions = suspicions
        self.modeName = modeName
    }

    private struct Seen {
        var samples: [RawSample] = []
        var observations: [Observation?] = []
        /// The holder of the file lock when it was queried, and the number of queries.
        var lock: (arguments: [UInt64], holder: HoldingProcess)?
        var lockQueryCount = 0

        /// Limits the queries: none once the holder is known, and four at most. Each may take the recorder seconds on a
        /// loaded machine.
        func mayQueryLock(about snapshot: stall_wait_snapshot) -> Bool {
            guard snapshot.waits_for_file, lockQueryCount < 4 else { return false }
            guard let lock else { return true }
            return snapshot.detail == STALL_WAIT_FILE_LOCK
                && withUnsafeBytes(of: snapshot.thread.arguments) {
                    !lock.arguments.elementsEqual($0.bindMemory(to: UInt64.self))
                }
        }
    }

    private struct Others {
        var members: [CapturedThread] = []
        var round = ThreadRound()
        var cost = Duration.zero
        var task: UInt64 = 0
        var openWork: [OpenWork] = []
    }

    /// The part that stays the same from an incident's first report to its last.
    private struct OpenStall {
        let id: UniqueID
        let start: UnixTime
        let began: MonotonicInstant
        let others: Others
    }

    private struct LockOwner {
        let name: String?
        let wait: Wait
        let counters: Counters
        let stack: Result<CapturedStack, CaptureError>?
    }

    /// Decodes a record. Returns a request if the record completes one.
    func take(_ record: HandoverRing.Record) -> RecorderRequest? {
        switch record.kind {
        case .sample: add(record.value.load(as: SampleRecord.self), record.tails.0)
        case .late: add(record.value.load(as: LateRecord.self), record.tails.0)
        case .observation: add(record.value.load(as: ObservationRecord.self), record.tails.0)
        case .owner: add(record.value.load(as: OwnerRecord.self), record.tails)
        case .suspect: add(record.value.load(as: SuspectRecord.self))
        case .thread: add(record.value.load(as: ThreadRecord.self), record.tails.0)
        case .round:
            let round = record.value.load(as: RoundRecord.self)
            others.round.skippedCount = round.skippedCount
            others.cost = round.cost
        case .discard: seen[record.value.load(as: DiscardRecord.self).kind] = nil
        case .incident: return .record(report(record.value.load(as: IncidentRecord.self)))
        case .measure:
            let measure = record.value.load(as: MeasureRecord.self)
            return .measured(
                PendingMeasure(
                    loop: name, threshold: measure.threshold, start: measure.start,
                    measure: LoopMeasure(from: measure.first, to: measure.last)))
        case .openWork: add(record.value.load(as: OpenWorkRecord.self), record.tails.0)
        case .gap, .unwatched: break
        }
        return nil
    }

    private func add(_ record: SampleRecord, _ frames: UnsafeRawBufferPointer) {
        var sample = RawSample(
            offset: record.offset, taken: record.taken, isLate: record.isLate,
            thread: record.thread, phase: record.phase, mode: record.mode,
            label: record.label.string, cost: record.cost)
        if let header = record.stack {
            do throws(CaptureError) {
                sample.stack = try StackCopy(header, frames: frames).decoded()
            } catch {
                sample.failure = error.description
            }
        } else {
            sample.failure =
                record.status == .noSampler
                ? "no memory for the sampler when the agent started"
                : "no thread was running its work"
        }
        last = record.kind
        owners = [:]
        var all = seen[record.kind] ?? Seen()
        if all.samples.count >= 64 {
            all.samples.removeFirst(32)
            all.observations.removeFirst(32)
        }
        all.samples.append(sample)
        all.observations.append(nil)
        seen[record.kind] = all
    }

    private func add(_ record: LateRecord, _ frames: UnsafeRawBufferPointer) {
        guard let stack = try? StackCopy(record.stack, frames: frames).decoded() else { return }
        let late = LateStack(
            requested: record.requested, answered: record.answered, stack: stack,
            isLate: record.isLate)
        for (kind, var all) in seen {
            for index in all.samples.indices { all.samples[index].complete(with: late) }
            seen[kind] = all
        }
    }

    private func add(_ record: ObservationRecord, _ descriptors: UnsafeRawBufferPointer) {
        guard var all = seen[last], !all.observations.isEmpty else { return }
        let found = descriptors.bindMemory(to: stall_descriptor_snapshot.self)
        var snapshot = record.wait
        if all.mayQueryLock(about: snapshot) {
            all.lockQueryCount += 1
            stall_wait_find_file_lock(&snapshot, record.thread.rawValue)
        }
        var wait = Wait(WaitCopy(snapshot: snapshot, descriptors: found))
        var counters = Counters(record.wait.thread)
        wait.unreadable.formUnion(counters.add(record.process))
        // The earlier holder still holds the lock, or the arguments of the wait would differ.
        if let holder = wait.fileLockHolder ?? wait.databaseLockHolder {
            all.lock = (wait.arguments, holder)
        }
        if snapshot.detail == STALL_WAIT_FILE_LOCK, wait.arguments == all.lock?.arguments {
            wait.fileLockHolder = all.lock?.holder
        }
        all.observations[all.observations.count - 1] = Observation(
            at: record.at, thread: record.thread, wait: wait, counters: counters, cost: record.cost)
        seen[last] = all
    }

    private func add(
        _ record: OwnerRecord, _ tails: (UnsafeRawBufferPointer, UnsafeRawBufferPointer)
    ) {
        let copy = WaitCopy(
            snapshot: record.wait,
            descriptors: tails.0.bindMemory(to: stall_descriptor_snapshot.self))
        let stack = record.stack.map { header in
            Result { () throws(CaptureError) in try StackCopy(header, frames: tails.1).decoded() }
        }
        owners[record.thread] = LockOwner(
            name: record.name.string, wait: Wait(copy), counters: Counters(record.wait.thread),
            stack: stack)
    }

    private func add(_ record: SuspectRecord) {
        guard let owner = owners[record.owner], let count = seen[last]?.observations.count,
            count > 0
        else { return }
        var suspect = LockSuspect(
            waiter: record.waiter, address: record.address, field: record.field,
            owner: record.owner, name: owner.name, wait: owner.wait, counters: owner.counters)
        switch owner.stack {
        case .success(let stack): suspect.stack = stack
        case .failure(let error): suspect.failure = error.description
        case nil: break
        }
        seen[last]?.observations[count - 1]?.suspects.append(suspect)
    }

    private func add(_ record: ThreadRecord, _ frames: UnsafeRawBufferPointer) {
        let thread = CapturedThread(
            StackCopy(record.stack, frames: frames), name: record.name.string)
        if record.role == .member {
            others.members.append(thread)
        } else {
            others.round.threads.append(thread)
        }
    }

    private func add(_ record: OpenWorkRecord, _ items: UnsafeRawBufferPointer) {
        others.task = record.task
        others.openWork = items.bindMemory(to: stall_open_work.self).map {
            OpenWork($0, at: record.at, stalledTask: record.task)
        }
    }

    private func report(_ record: IncidentRecord) -> PendingReport {
        let incident = record.incident
        let stall = openStall(record)
        var samples = seen[record.kind]?.samples ?? []
        if record.kind == .saturation {
            for index in samples.indices {
                samples[index].offset = samples[index].taken - incident.began
            }
        }
        let culprit = samples.last { !$0.isLate } ?? samples.last
        var counters = Counters(record.thread)
        _ = counters.add(record.process)
        return PendingReport(
            id: stall.id, start: stall.start, loop: name,
            mode: culprit.flatMap { modeName($0.mode) } ?? "", incident: incident,
            samples: samples, members: stall.others.members, others: stall.others.round,
            othersCost: stall.others.cost,
            evidenceLog: EvidenceLog(
                observations: seen[record.kind]?.observations ?? [], last: counters,
                lastPoll: record.lastPoll),
            thread: culprit.map(\.thread) ?? thread, task: stall.others.task,
            openWork: stall.others.openWork, context: suspicions.facts(began: incident.began))
    }

    /// Each incident has one id.
    private func openStall(_ record: IncidentRecord) -> OpenStall {
        let began = record.incident.began
        defer { if record.incident.hasEnded { open[record.kind] = nil } }
        if let known = open[record.kind], known.began == began { return known }
        others.round.sort()
        let stall = OpenStall(
            id: UniqueID(version7At: record.start), start: record.start,
            began: began, others: others)
        others = Others()
        open[record.kind] = stall
        return stall
    }
}
