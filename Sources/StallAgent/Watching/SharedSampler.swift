// The process's only sampler, confined to the watchdog's thread.

internal import StallCapture
internal import StallCause
internal import StallModel

/// Captures stacks and reads the process's state without allocating.
final class SharedSampler: @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches it after `init`.
    private var sampler: StackSampler
    let process: ProcessEvidence

    init(_ controlGroup: ControlGroup) throws(CaptureError) {
        process = ProcessEvidence(controlGroup)
        sampler = try StackSampler()
    }

    /// The stack is in the sampler's memory until the next call.
    func copyStack(of thread: RegisteredThread, within limit: Duration) -> StackCopy {
        sampler.copyStack(of: thread, timeout: limit)
    }

    /// The thread's late answer, if it has come.
    func copyLateStack(of thread: RegisteredThread) -> LateStackCopy? {
        sampler.copyLateStack(of: thread)
    }

    /// The stack of a thread that did not register itself.
    func copyStack(ofFound id: ThreadID, within limit: Duration) -> StackCopy {
        do throws(CaptureError) {
            return sampler.copyStack(of: try .found(id), timeout: limit)
        } catch {
            return StackCopy(id, failure: error)
        }
    }

    /// Visits all threads but the caller's and `excluded`. Returns how many were skipped for lack of room or time.
    func visitThreads(except excluded: ThreadID?, _ visit: (StackCopy) -> Void) -> Int {
        sampler.visitThreads(except: { $0 == excluded }, visit)
    }
}
