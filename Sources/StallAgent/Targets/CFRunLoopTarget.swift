// The target behind Foundation's run loops, observed through CoreFoundation (CLinux/stall_cfrunloop.h).

internal import CLinux
internal import StallCapture
internal import StallModel
internal import StallRunLoop

/// A watched CFRunLoop.
final class CFRunLoopTarget: MonitoredTarget, @unchecked Sendable {
    // Unchecked because `loop` may be used from any thread until it is detached, once.
    private let loop: OpaquePointer
    private let thread: RegisteredThread
    private let isDetached = AgentLocked(false)
    /// The mode at the last poll: this loop's beacon has no mode numbers.
    private let mode = AgentLocked("")
    /// The watchdog must not take Foundation's lock, so the probe thread does.
    private(set) lazy var correction = LoopCorrection { [weak self] in self?.answer($0, at: $1) }

    /// Observes the calling thread's loop; nil without CFRunLoop or memory.
    init?(_ thread: RegisteredThread) {
        guard let loop = stall_foreign_loop_attach() else { return nil }
        self.loop = loop
        self.thread = thread
    }

    var beacon: UnsafeMutablePointer<stall_beacon> { stall_foreign_loop_beacon(loop) }

    func findThread() -> RegisteredThread? { thread }

    func correct(_ word: UInt64, at now: MonotonicInstant) -> Bool {
        correction.ask(word, at: now)
    }

    /// On the probe thread. Does not wait for a thread that is just detaching: nothing is left to correct then.
    private func answer(_ word: UInt64, at now: MonotonicInstant) {
        isDetached.withLockIfAvailable { isDetached in
            guard !isDetached else { return }
            if thread.hasEnded {
                _ = stall_beacon_correct(beacon, word, UInt8(STALL_LOOP_IDLE), now.nanoseconds)
                return
            }
            let current = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { mode in
                stall_foreign_loop_correct(loop, word, now.nanoseconds, mode.baseAddress!)
                return String(cString: mode.baseAddress!)
            }
            mode.withLock { $0 = current }
        }
    }

    func modeName(_ number: UInt32) -> String? { mode.withLock { $0 } }

    func detach() {
        isDetached.withLock { isDetached in
            guard !isDetached else { return }
            isDetached = true
            stall_foreign_loop_detach(loop)
        }
    }
}
