// One thread's stack as addresses. The watchdog owns a sampler; CStackCapture does the work.
//
//     state in /proc -> blocked: read from outside | running: a signal, the thread copies its stack -> unwind the copy
//
// Nothing here waits for the captured thread longer than the timeout, takes a lock that it may hold, or stops it.

internal import CStackCapture
internal import Glibc
package import StallModel

/// Whether SIGURG and SIGPROF may be used to capture a running thread. SIGPROF is for threads that block SIGURG.
package enum SignalUse: Sendable {
    /// Only blocked threads are captured.
    case never
    /// A signal is used unless the app has a handler for it.
    case unlessOwned
    /// Signals are used even then; the app's handler gets those that are not the sampler's. A signal that is sent to a
    /// thread while the sampler's is pending there is lost, because these signals do not queue.
    case chained
}

/// Captures stacks of this process's threads, with memory that `init` allocated.
package struct StackSampler: ~Copyable {
    private let sampler: OpaquePointer
    /// For a round over many threads: their ids, and whether each was captured.
    let roundIDs: UnsafeMutableBufferPointer<Int32>
    let roundCaptured: UnsafeMutableBufferPointer<Bool>
    static let longestRound = 2048

    /// Allocates the sampler and installs the signal handler, which then stays for the life of the process.
    ///
    /// - Parameters:
    ///   - addressCapacity: The most addresses of one stack; deeper ones are truncated.
    ///   - stackByteCapacity: The most bytes of a running thread's stack. The first sampler of the process decides.
    ///   - signalUse: Whether running threads may be signalled.
    /// - Throws: ``CaptureError/system(call:errno:)`` without memory.
    package init(
        addressCapacity: Int = 8192, stackByteCapacity: Int = 1 << 20,
        signalUse: SignalUse = .unlessOwned
    ) throws(CaptureError) {
        let use =
            switch signalUse {
            case .never: STALL_SIGNAL_NEVER
            case .unlessOwned: STALL_SIGNAL_UNLESS_OWNED
            case .chained: STALL_SIGNAL_CHAINED
            }
        guard
            let sampler = stall_sampler_create(
                UInt32(clamping: addressCapacity), UInt32(clamping: stackByteCapacity), use)
        else { throw .system(call: "mmap", errno: errno) }
        self.sampler = sampler
        roundIDs = .allocate(capacity: Self.longestRound)
        roundCaptured = .allocate(capacity: Self.longestRound)
    }

    deinit {
        stall_sampler_destroy(sampler)
        roundIDs.deallocate()
        roundCaptured.deallocate()
    }

    /// Captures the call stack of one thread, innermost frame first.
    ///
    /// A blocked thread is read without disturbing it. A running one is interrupted by a signal whose handler copies
    /// its stack; it is unwound here.
    ///
    /// - Parameters:
    ///   - thread: The thread to capture, not the calling one. It may end at any moment.
    ///   - timeout: How long to wait for it to answer or to stay blocked.
    /// - Returns: At least one address. Element 0 is the interrupted instruction, after the system call if in one. An
    ///   address after a signal frame is an interrupted instruction too; every other one is a return address.
    /// - Throws: ``CaptureError``. The sampler stays usable after any of them.
    ///
    /// **Thread safety:** one caller at a time; `mutating` makes the compiler check it.
    /// **Cost:** none for a blocked thread. Allocates only the result, after the thread has continued.
    /// **Source:** proc(5), "/proc/pid/syscall"; DWARF 5, section 6.4 "Call Frame Information".
    package mutating func captureStack(
        of thread: RegisteredThread, timeout: Duration
    ) throws(CaptureError) -> CapturedStack {
        try copyStack(of: thread, timeout: timeout).decoded()
    }

    /// The same without allocating: the result is in the sampler's memory until its next capture.
    package mutating func copyStack(of thread: RegisteredThread, timeout: Duration) -> StackCopy {
        var stack = stall_stack()
        let result = thread.withC {
            stall_sampler_capture(sampler, $0, timeout.nanoseconds, &stack)
        }
        return StackCopy(thread.id, timeout, result, stack)
    }

    /// The stack of a thread that answered late after ``CaptureError/answersLater(_:)``, if the answer has come.
    /// Neither waits nor allocates: the result is in the sampler's memory until its next capture.
    package mutating func copyLateStack(of thread: RegisteredThread) -> LateStackCopy? {
        var stack = stall_stack()
        guard thread.withC({ stall_sampler_collect_late(sampler, $0, &stack) }) else { return nil }
        return LateStackCopy(
            requested: MonotonicInstant(nanoseconds: stack.sent_ns),
            answered: MonotonicInstant(nanoseconds: stack.answered_ns),
            stack: StackCopy(thread.id, .zero, 0, stack))
    }

    /// The same, decoded. Allocates.
    package mutating func collectLateStack(of thread: RegisteredThread) -> LateStack? {
        guard let late = copyLateStack(of: thread), let stack = try? late.stack.decoded() else {
            return nil
        }
        return LateStack(requested: late.requested, answered: late.answered, stack: stack)
    }
}
