// Where watched work runs: always on one thread, or on any thread of a pool. Queried by TargetMonitor.

internal import CLinux
internal import StallCapture
internal import StallDetection
internal import StallModel
internal import Synchronization

/// A watched target, as the watchdog uses it. All but `modeName` is called on the watchdog's thread only, while the
/// watched thread may hold any lock of the app, the heap's included: implementations must not allocate, free or wait.
protocol MonitoredTarget: Sendable {
    /// The thread that runs the work now; nil if none does.
    func findThread() -> RegisteredThread?
    /// Whether the work only waits for a thread to get a CPU. Called if there is no thread.
    func isStarved() -> Bool
    /// The waits for a CPU of all threads that may take the work; nil if only those of `findThread`'s matter.
    func groupDelay() -> GroupDelay?
    /// The time that the thread of `findThread` had used, and waited for a CPU, when it began with the work; nil if
    /// unknown.
    func countersAtStart() -> (cpuTime: Duration, runDelay: Duration)?
    /// Visits the threads that share the work; none if it is one thread's.
    func forEachMember(_ body: (RegisteredThread) -> Void)
    /// Corrects a beacon that has been busy for long, if the work is not busy after all. False while that is not known
    /// yet.
    func correct(_ word: UInt64, at now: MonotonicInstant) -> Bool
    /// Whether the work itself writes the beacon, so that no correction is needed.
    var isExact: Bool { get }
    /// Since when this busy span is known to be one piece of work, by `correct`; nil if it is from its beginning.
    func undividedSince(_ word: UInt64, at now: MonotonicInstant) -> MonotonicInstant?
    /// Writes the activity label, zero-ended text of at most 64 bytes; empty for none.
    func readLabel(of beacon: LoopBeacon, into text: UnsafeMutablePointer<CChar>)
    /// The name of the mode with this number in the beacon. Called on the recorder's thread, which may wait.
    func modeName(_ number: UInt32) -> String?
    /// The thread whose open requests and spans belong in a report; nil if tasks run the work: then those of all tasks.
    var openWorkThread: ThreadID? { get }
    /// The task that runs now, by its address; 0 if unknown.
    var currentTask: UInt64 { get }
}

extension MonitoredTarget {
    func isStarved() -> Bool { false }
    func groupDelay() -> GroupDelay? { nil }
    func countersAtStart() -> (cpuTime: Duration, runDelay: Duration)? { nil }
    func forEachMember(_ body: (RegisteredThread) -> Void) {}
    func correct(_ word: UInt64, at now: MonotonicInstant) -> Bool { true }
    func readLabel(of beacon: LoopBeacon, into text: UnsafeMutablePointer<CChar>) {
        beacon.readLabel(into: text)
    }
    func modeName(_ number: UInt32) -> String? { nil }
    var isExact: Bool { false }
    func undividedSince(_ word: UInt64, at now: MonotonicInstant) -> MonotonicInstant? { nil }
    var openWorkThread: ThreadID? { nil }
    var currentTask: UInt64 { 0 }
}

/// Work of one thread: a run loop, or work that a thread marks itself.
final class ThreadTarget: MonitoredTarget {
    private let thread: RegisteredThread
    private let beacon: SharedBeacon
    private let name: @Sendable (UInt32) -> String?
    /// Where the thread stores its current task; 0 if unknown.
    private let taskWord = Atomic<UInt64>(0)
    /// Whether the thread waits although the beacon has this word, because no wait of it was observed so far; nil if
    /// that cannot be read.
    private let isWaitingUnseen: (@Sendable (UInt64) -> Bool?)?
    private let hasWaitedUnseen = Atomic<Bool>(false)

    init(
        _ thread: RegisteredThread, beacon: SharedBeacon,
        isWaitingUnseen: (@Sendable (UInt64) -> Bool?)? = nil,
        modeName: @escaping @Sendable (UInt32) -> String? = { _ in nil }
    ) {
        self.thread = thread
        self.beacon = beacon
        self.isWaitingUnseen = isWaitingUnseen
        name = modeName
    }

    /// The beacon does not show the thread's waits: one was seen from outside.
    var isBypassed: Bool { hasWaitedUnseen.load(ordering: .relaxed) }

    var isExact: Bool { true }
    var openWorkThread: ThreadID? { thread.id }
    func findThread() -> RegisteredThread? { thread }
    func modeName(_ number: UInt32) -> String? { name(number) }

    /// Tasks may run on this thread, if its executor is the app's. Called on the thread, after a task has learned where
    /// threads store their tasks.
    func learnTask() { taskWord.store(stall_jobs_task_word(), ordering: .relaxed) }

    var currentTask: UInt64 { stall_jobs_read_task(taskWord.load(ordering: .relaxed)) }

    func readLabel(of beacon: LoopBeacon, into text: UnsafeMutablePointer<CChar>) {
        beacon.readLabel(into: text)
        if text[0] == 0 { _ = stall_task_note_read(currentTask, text) }
    }

    /// A thread that ended during its work is not stalled. Another thread may have its id by now.
    func correct(_ word: UInt64, at now: MonotonicInstant) -> Bool {
        // Not Optional.map, whose first use makes the metadata of a function's type, in the heap.
        let isWaiting: Bool? = if let isWaitingUnseen { isWaitingUnseen(word) } else { false }
        if isWaiting == true { hasWaitedUnseen.store(true, ordering: .relaxed) }
        if isWaiting != false || thread.hasEnded {
            beacon.correct(word, to: UInt8(STALL_LOOP_IDLE), at: now)
        }
        return true
    }
}

extension RegisteredThread {
    /// Whether the thread has ended. False if `/proc` cannot be read.
    var hasEnded: Bool {
        do {
            return try RegisteredThread.found(id).startTicks != startTicks && startTicks != 0
        } catch {
            return error == .threadEnded(id)
        }
    }
}

/// A counted reference to a beacon that the agent itself writes.
final class SharedBeacon: @unchecked Sendable {
    // Unchecked because of the pointer. Every access through it is one atomic operation.
    let pointer: UnsafeMutablePointer<stall_beacon>

    /// Retains the beacon.
    init(_ pointer: UnsafeMutablePointer<stall_beacon>) {
        stall_beacon_retain(pointer)
        self.pointer = pointer
    }

    /// A new beacon; nil without memory.
    init?() {
        guard let pointer = stall_beacon_create() else { return nil }
        self.pointer = pointer
    }

    deinit { stall_beacon_release(pointer) }

    func correct(_ word: UInt64, to status: UInt8, at now: MonotonicInstant) {
        stall_beacon_correct(pointer, word, status, now.nanoseconds)
    }
}
