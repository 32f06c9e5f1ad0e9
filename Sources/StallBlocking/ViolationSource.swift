// Hands what the interposed functions noted to the recorder.

internal import CBlockingCalls
internal import CLinux
internal import StallAgent
internal import StallCapture
internal import StallModel
internal import Synchronization

/// The calls of one ban. The interposed functions have one reader: the current source.
final class ViolationSource: ForbiddenCallSource {
    private let rules: [AllowRule]
    /// The calls noted before the end that the recorder has not taken.
    private let rest = Mutex<[ForbiddenCall]>([])
    /// Held while the reader changes.
    private static let current = Mutex<ViolationSource?>(nil)

    init(allowing rules: [AllowRule]) { self.rules = rules }

    var isCurrent: Bool { Self.current.withLock { $0 === self } }

    func begin(for monitor: StallMonitor) {
        guard let wakeup = monitor.reportCalls(of: self) else { return }
        Self.current.withLock { current in
            current?.stop()
            let isStarted = stall_blocking_start(
                { stall_wakeup_signal($0!.assumingMemoryBound(to: stall_wakeup.self)) }, wakeup)
            current = isStarted ? self : nil
        }
    }

    func end() {
        Self.current.withLock { current in
            guard current === self else { return }
            stop()
            current = nil
        }
    }

    /// Keeps what was noted so far for the recorder.
    private func stop() {
        stall_blocking_stop()
        rest.withLock { rest in
            while let call = ForbiddenCall.take(of: 0) { rest.append(call) }
        }
    }

    var isEmpty: Bool {
        rest.withLock { $0.isEmpty } && (!isCurrent || !stall_blocking_has_any(0))
    }

    func next() -> ForbiddenCall? {
        let kept = rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        return kept ?? (isCurrent ? .take(of: 0) : nil)
    }

    func takeDropped() -> Int { Int(stall_blocking_take_dropped()) }

    func allows(_ function: Frame) -> Bool { rules.fit(function) }
}

extension ForbiddenCall {
    /// Takes an owner's oldest call from the interposed functions; nil if there is none. 0 is the owner of those of a ban.
    static func take(of owner: UInt64) -> ForbiddenCall? {
        withUnsafeTemporaryAllocation(of: stall_violation.self, capacity: 1) { violation in
            guard let violation = violation.baseAddress, stall_blocking_take(owner, violation)
            else {
                return nil
            }
            return ForbiddenCall(violation)
        }
    }

    private init(_ violation: UnsafeMutablePointer<stall_violation>) {
        let count = Int(min(violation.pointee.count, UInt32(STALL_VIOLATION_FRAMES)))
        let stack = withUnsafeBytes(of: &violation.pointee.frames) { frames in
            CapturedStack(
                frames: UnsafeRawBufferPointer(
                    rebasing: frames.prefix(count * MemoryLayout<stall_frame>.stride)),
                isTruncated: violation.pointee.is_truncated, method: .signalFree)
        }
        self.init(
            name: String(cString: violation.pointee.call),
            cause: CauseClass(rawValue: violation.pointee.kind.rawValue) ?? .unknown,
            target: UInt(bitPattern: violation.pointee.target),
            thread: ThreadID(rawValue: violation.pointee.thread),
            phase: LoopPhase(rawValue: violation.pointee.phase) ?? .unknown,
            began: MonotonicInstant(nanoseconds: violation.pointee.began_ns),
            length: .nanoseconds(Int64(clamping: violation.pointee.length_ns)), stack: stack)
    }
}
