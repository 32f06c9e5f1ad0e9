// Where watched work runs: on one thread for ever, or on whichever thread a pool lends. TargetMonitor asks.

internal import CLinux
internal import StallCapture
internal import StallDetection
internal import StallModel
internal import Synchronization

/// What is watched, as far as the watchdog must know it. All but `modeName` is called on the watchdog's thread only,
/// while the watched thread may hold any lock of the app, the heap's included: nothing may be allocated, freed or
/// waited for.
protocol MonitoredTarget: Sendable {
    /// The thread that is at the work now; nil when none is.
    func findThread() -> RegisteredThread?
    /// Whether the work could go on and only waits for a thread to get a CPU. Asked when there is no thread.
    func isStarved() -> Bool
    /// Visits the threads among which the work is shared; none when it is one thread's.
    func forEachMember(_ body: (RegisteredThread) -> Void)
    /// Sets a beacon right that has said busy since long, when there is a reason not to believe it. False when that is
    /// not known yet.
    func correct(_ word: UInt64, at now: MonotonicInstant) -> Bool
    /// The beacon is written by the work itself, and never has to be set right.
    var isExact: Bool { get }
    /// Writes what the work is labelled, zero-ended text of at most 64 bytes; empty for nothing.
    func readLabel(of beacon: LoopBeacon, into text: UnsafeMutablePointer<CChar>)
    /// The name of the mode that the beacon shows as `number`. Called on the recorder's thread, which may wait.
    func modeName(_ number: UInt32) -> String?
}

extension MonitoredTarget {
    func isStarved() -> Bool { false }
    func forEachMember(_ body: (RegisteredThread) -> Void) {}
    func correct(_ word: UInt64, at now: MonotonicInstant) -> Bool { true }
    func readLabel(of beacon: LoopBeacon, into text: UnsafeMutablePointer<CChar>) {
        beacon.readLabel(into: text)
    }
    func modeName(_ number: UInt32) -> String? { nil }
    var isExact: Bool { false }
}

/// Work that belongs to one thread: a run loop's, or what a thread marks itself.
final class ThreadTarget: MonitoredTarget {
    private let thread: RegisteredThread
    private let beacon: SharedBeacon
    private let name: @Sendable (UInt32) -> String?

    init(
        _ thread: RegisteredThread, beacon: SharedBeacon,
        modeName: @escaping @Sendable (UInt32) -> String? = { _ in nil }
    ) {
        self.thread = thread
        self.beacon = beacon
        name = modeName
    }

    var isExact: Bool { true }
    func findThread() -> RegisteredThread? { thread }
    func modeName(_ number: UInt32) -> String? { name(number) }

    /// A thread that ended in the middle of its work is not stalled. Another one may have its id by now.
    func correct(_ word: UInt64, at now: MonotonicInstant) -> Bool {
        if thread.hasEnded { beacon.correct(word, to: UInt8(STALL_LOOP_IDLE), at: now) }
        return true
    }
}

extension RegisteredThread {
    /// Whether the thread is gone. False when `/proc` does not tell.
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
    // Unchecked because a pointer is: every access behind it is one atomic operation.
    let pointer: UnsafeMutablePointer<stall_beacon>

    /// Takes a reference of its own.
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
