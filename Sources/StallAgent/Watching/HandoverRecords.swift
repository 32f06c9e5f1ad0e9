// What the watchdog hands to the recorder. All of it is plain memory: no references, nothing that must be freed.

internal import CLinux
internal import StallCapture
internal import StallCause
internal import StallDetection
internal import StallModel

/// Text that ends with a zero, in place.
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

/// Why there is no stack, or that there is one.
enum StackPresence: UInt8 { case taken, noSampler, noThread }

/// One look at the stalled thread. Tail: the frames.
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
    var presence: StackPresence
    /// What is known of the stack; nil when no thread was looked at.
    var stack: StackCopy.Header?
}

/// The stack of the samples that the thread had not answered for. Tail: the frames.
struct LateRecord {
    var asked: MonotonicInstant
    var answered: MonotonicInstant
    /// The loop had moved on by then.
    var isLate: Bool
    var stack: StackCopy.Header
}

/// What the kernel said of the thread beside the sample before it. Tail: descriptors.
struct ObservationRecord {
    var thread: ThreadID
    var at: MonotonicInstant
    var cost: Duration
    var wait: stall_wait_snapshot
    var process: ProcessSnapshot
}

/// A thread that may hold what the one of the observation before it waits for. Tails: descriptors, frames.
struct OwnerRecord {
    var thread: ThreadID
    var name: ShortText<16>
    var wait: stall_wait_snapshot
    var stack: StackCopy.Header?
}

/// Who may hold what. The owner's record came before.
struct SuspectRecord {
    var waiter: ThreadID
    var address: UInt64
    var field: LockSuspect.Field
    var owner: ThreadID
}

/// Another thread of the process, seen for the incident that comes next. Tail: frames.
struct ThreadRecord {
    var role: ThreadRole
    var name: ShortText<16>
    var stack: StackCopy.Header
}

/// The end of a look at other threads.
struct RoundRecord {
    var skippedCount: Int
    var cost: Duration
}

/// A stall began, goes on or ended.
struct IncidentRecord {
    var kind: IncidentKind
    var incident: StallIncident
    /// When it began, on the wall clock.
    var start: UnixTime
    /// A last look at the counters.
    var thread: stall_thread_snapshot
    var process: ProcessSnapshot
    var lastPoll: MonotonicInstant
}

/// A stretch of watched time.
struct MeasureRecord {
    var first: LoopCounters
    var last: LoopCounters
    var threshold: Duration
    var start: UnixTime
}

/// The samples so far are of no incident.
struct ForgetRecord { var kind: IncidentKind }

/// The sender writes no more.
struct UnwatchedRecord {}
