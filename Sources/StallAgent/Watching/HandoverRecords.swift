// The records from the watchdog to the recorder. Plain memory only: no references, nothing to free.

internal import CLinux
internal import StallCapture
internal import StallCause
internal import StallDetection
internal import StallModel

/// Zero-ended text, stored inline.
struct ShortText<let capacity: Int> {
    private var bytes = InlineArray<capacity, CChar>(repeating: 0)

    mutating func fill(_ body: (UnsafeMutablePointer<CChar>) -> Void) {
        withUnsafeMutableBytes(of: &bytes) {
            body($0.baseAddress!.assumingMemoryBound(to: CChar.self))
        }
    }

    /// Nil when it is empty.
    var string: String? {
        withUnsafeBytes(of: bytes) { bytes in
            bytes[0] == 0 ? nil : String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}

/// Whether there is a stack, and if not, why.
enum StackStatus: UInt8 { case captured, noSampler, noThread }

/// One sample of the stalled thread. Tail: the frames.
struct SampleRecord {
    var kind: IncidentKind
    var offset: Duration
    var taken: MonotonicInstant
    var isLate: Bool
    var thread: ThreadID
    var phase: LoopPhase
    var mode: UInt32
    var label: ShortText<64>
    var cost: Duration
    var status: StackStatus
    /// Nil if no thread was captured.
    var stack: StackCopy.Header?
}

/// A stack for earlier samples whose capture timed out. Tail: the frames.
struct LateRecord {
    var requested: MonotonicInstant
    var answered: MonotonicInstant
    /// The loop had made progress by then.
    var isLate: Bool
    var stack: StackCopy.Header
}

/// The kernel's evidence on the thread, for the preceding sample. Tail: descriptors.
struct ObservationRecord {
    var thread: ThreadID
    var at: MonotonicInstant
    var cost: Duration
    var wait: stall_wait_snapshot
    var process: ProcessSnapshot
}

/// A thread that may hold what the thread of the preceding observation waits for. Tails: descriptors, frames.
struct OwnerRecord {
    var thread: ThreadID
    var name: ShortText<16>
    var wait: stall_wait_snapshot
    var stack: StackCopy.Header?
}

/// A thread that waits, and a lock that it may wait for. The owner's record precedes it.
struct SuspectRecord {
    var waiter: ThreadID
    var address: UInt64
    var field: LockSuspect.Field
    var owner: ThreadID
}

/// Another thread of the process, captured for the next incident. Tail: frames.
struct ThreadRecord {
    var role: ThreadRole
    var name: ShortText<16>
    var stack: StackCopy.Header
}

/// Requests and spans that were open when the next incident was seen. Tail: `stall_open_work` values.
struct OpenWorkRecord {
    var at: MonotonicInstant
    /// The task that stalled; 0 if unknown.
    var task: UInt64
}

/// The end of a round over other threads.
struct RoundRecord {
    var skippedCount: Int
    var cost: Duration
}

/// A stall began, continues or ended.
struct IncidentRecord {
    var kind: IncidentKind
    var incident: StallIncident
    /// When it began, on the wall clock.
    var start: UnixTime
    /// The counters at the last poll.
    var thread: stall_thread_snapshot
    var process: ProcessSnapshot
    var lastPoll: MonotonicInstant
}

/// An interval of watched time.
struct MeasureRecord {
    var first: LoopCounters
    var last: LoopCounters
    var threshold: Duration
    var start: UnixTime
}

/// Discard the samples so far: they belong to no incident.
struct DiscardRecord { var kind: IncidentKind }

/// The sender writes no more records.
struct UnwatchedRecord {}
