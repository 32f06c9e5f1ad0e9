// Gathers evidence of one watched place's thread, beside each sample, and hands it over. Runs on the watchdog's thread.

internal import CLinux
internal import StallCapture
internal import StallCause
internal import StallModel

/// The counters of the process, kept open once for all loops, and memory for looks. The watchdog's thread alone uses it.
final class ProcessEvidence: @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches it after `init`.
    private let gatherer: ProcessGatherer
    let look = WaitLook()
    let search = SuspectSearch()

    init(_ controlGroup: ControlGroup) {
        gatherer = ProcessGatherer(controlGroup)
        SystemCall.prepare()
    }

    func read() -> ProcessLook { gatherer.read() }
}

/// What was seen of a stall, for the decision on its cause.
struct EvidenceLog: Sendable {
    /// One for each sample, in their order; nil where no thread was at the work. Fewer when the first ones are gone.
    var observations: [Observation?]
    /// The counters at the last look, and when that was.
    var last: Counters
    var lastLook: MonotonicInstant
}

/// Looks at the thread of one loop.
struct EvidenceCollector: ~Copyable {
    private let process: ProcessEvidence
    private var gatherer: ThreadGatherer?

    init(process: ProcessEvidence) { self.process = process }

    /// Looks at the thread and adds what it saw to the group, behind the sample.
    mutating func observe(
        _ thread: RegisteredThread, into ring: HandoverRing, from sender: UInt,
        sampler: SharedSampler
    ) {
        follow(thread)
        let start = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        let look = process.look
        gatherer?.look(into: look)
        let processLook = process.read()
        let cost = MonotonicInstant(nanoseconds: stall_monotonic_ns()) - start
        let copy = look.copy
        ring.append(
            .observation,
            ObservationRecord(
                thread: thread.id, at: start, cost: cost, wait: copy.look, process: processLook),
            from: sender, UnsafeRawBufferPointer(copy.descriptors))
        process.search.run(
            behind: look, of: thread.id,
            SuspectWriter(ring: ring, sender: sender, sampler: sampler))
    }

    /// Goes once through what a stall will need.
    func rehearse(
        _ id: ThreadID, into ring: HandoverRing, from sender: UInt, sampler: SharedSampler
    ) {
        process.search.rehearse(
            id, process.look, SuspectWriter(ring: ring, sender: sender, sampler: sampler))
    }

    /// A last look at the counters.
    mutating func lastLook(_ record: inout IncidentRecord) {
        let look = process.look
        look.clear()
        gatherer?.look(into: look)
        record.thread = look.copy.look.thread
        record.process = process.read()
        record.lastLook = MonotonicInstant(nanoseconds: stall_monotonic_ns())
    }

    /// Opens the thread's files, so that they are there when they are needed.
    mutating func follow(_ thread: RegisteredThread) {
        guard gatherer?.thread != thread.id else { return }
        gatherer = ThreadGatherer(thread.id, sharing: thread.keptFiles)
    }
}

/// Adds the threads that may hold a lock to the group.
private struct SuspectWriter: SuspectSearch.Visitor {
    let ring: HandoverRing
    let sender: UInt
    let sampler: SharedSampler

    func owner(_ thread: ThreadID, _ look: WaitLook, isStalledThread: Bool) {
        let copy = look.copy
        var record = OwnerRecord(
            thread: thread, name: ShortText(), wait: copy.look, stack: nil)
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
