// Collects evidence of one target's thread with each sample, and hands it over. Runs on the watchdog's thread.

internal import CLinux
internal import StallCapture
internal import StallCause
internal import StallModel

/// The counters of the process, from files opened once for all loops, and buffers for snapshots. Confined to the
/// watchdog's thread.
final class ProcessEvidence: @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches it after `init`.
    private let reader: ProcessStateReader
    let snapshot = WaitSnapshot()
    let search = SuspectSearch()
    let openWork = OpenWorkBuffer()

    init(_ controlGroup: ControlGroup) {
        reader = ProcessStateReader(controlGroup)
        SystemCall.prepare()
    }

    func read() -> ProcessSnapshot { reader.read() }
}

/// The evidence of one stall, for the decision on its cause.
struct EvidenceLog: Sendable {
    /// One per sample, in their order; nil if no thread ran the work. Fewer if the first ones were discarded.
    var observations: [Observation?]
    /// The counters at the last poll, and its time.
    var last: Counters
    var lastPoll: MonotonicInstant
}

/// Reads the state of one loop's thread.
struct EvidenceCollector: ~Copyable {
    private let process: ProcessEvidence
    private var reader: ThreadStateReader?

    init(process: ProcessEvidence) { self.process = process }

    /// Reads the thread's state and appends it to the group, after the sample.
    mutating func observe(
        _ thread: RegisteredThread, into ring: HandoverRing, from sender: UInt,
        sampler: SharedSampler
    ) {
        follow(thread)
        let start = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        let snapshot = process.snapshot
        reader?.snapshot(into: snapshot)
        let processSnapshot = process.read()
        let cost = MonotonicInstant(nanoseconds: stall_monotonic_ns()) - start
        let copy = snapshot.copy
        ring.append(
            .observation,
            ObservationRecord(
                thread: thread.id, at: start, cost: cost, wait: copy.snapshot,
                process: processSnapshot),
            from: sender, UnsafeRawBufferPointer(copy.descriptors))
        process.search.run(
            behind: snapshot, of: thread.id,
            SuspectWriter(ring: ring, sender: sender, sampler: sampler))
    }

    /// Runs all steps of a stall once in advance.
    func warmUp(
        _ id: ThreadID, into ring: HandoverRing, from sender: UInt, sampler: SharedSampler
    ) {
        process.search.warmUp(
            id, process.snapshot, SuspectWriter(ring: ring, sender: sender, sampler: sampler))
    }

    /// The counters at the last poll.
    mutating func lastPoll(_ record: inout IncidentRecord) {
        let snapshot = process.snapshot
        snapshot.clear()
        reader?.snapshot(into: snapshot)
        record.thread = snapshot.copy.snapshot.thread
        record.process = process.read()
        record.lastPoll = MonotonicInstant(nanoseconds: stall_monotonic_ns())
    }

    /// The work that is open now; valid until the next call.
    func copyOpenWork(thread: ThreadID?, task: UInt64) -> UnsafeRawBufferPointer {
        process.openWork.copy(thread: thread, task: task)
    }

    /// Opens the thread's files in advance.
    mutating func follow(_ thread: RegisteredThread) {
        guard reader?.thread != thread.id else { return }
        reader = ThreadStateReader(thread.id, sharing: thread.keptFiles)
    }
}

/// Appends the threads that may hold a lock to the group.
private struct SuspectWriter: SuspectSearch.Visitor {
    let ring: HandoverRing
    let sender: UInt
    let sampler: SharedSampler

    func owner(_ thread: ThreadID, _ snapshot: WaitSnapshot, isStalledThread: Bool) {
        let copy = snapshot.copy
        var record = OwnerRecord(
            thread: thread, name: ShortText(), wait: copy.snapshot, stack: nil)
        record.name.fill { _ = stall_thread_read_name(thread.rawValue, $0) }
        let descriptors = UnsafeRawBufferPointer(copy.descriptors)
        guard !isStalledThread else {
            return ring.append(.owner, record, from: sender, descriptors)
        }
        let stack = sampler.copyStack(ofFound: thread, within: .milliseconds(10))
        record.stack = stack.header
        ring.append(.owner, record, from: sender, descriptors, stack.frames)
    }

    func suspect(waiter: ThreadID, address: UInt64, field: LockSuspect.Field, owner: ThreadID) {
        ring.append(
            .suspect, SuspectRecord(waiter: waiter, address: address, field: field, owner: owner),
            from: sender)
    }
}
