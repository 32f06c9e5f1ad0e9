// A captured stack as plain memory. The watchdog passes it on undecoded, because decoding allocates, and the captured
// thread may hold the heap's lock.

internal import CStackCapture
internal import Glibc
package import StallModel

/// Whether the kernel shows this process's threads to it.
package func isProcessDumpable() -> Bool { stall_is_dumpable() }

/// The result of one capture: a stack, or why there is none.
package struct StackCopy {
    /// Everything besides the frames. Plain memory.
    package struct Header: Sendable {
        package let thread: ThreadID
        /// The last instant at which the stack is known to be valid. Zero without a stack.
        package let taken: MonotonicInstant
        fileprivate let result: CInt
        fileprivate let timeout: Duration
        /// The name of a call that failed: a literal, which is never freed.
        fileprivate let failedCall: UInt
        fileprivate let isTruncated: Bool
        fileprivate let method: CaptureMethod
    }

    package let header: Header
    /// The frames, innermost first, in memory owned by the creator of this copy.
    package let frames: UnsafeRawBufferPointer
    /// No earlier stack led through one of its images, which may be unloaded at any moment.
    package let showsNewImage: Bool

    init(_ thread: ThreadID, _ timeout: Duration, _ result: CInt, _ stack: stall_stack) {
        header = Header(
            thread: thread,
            taken: MonotonicInstant(nanoseconds: result == 0 ? stack.answered_ns : 0),
            result: result, timeout: timeout,
            failedCall: UInt(bitPattern: stack.failed_call), isTruncated: stack.is_truncated,
            method: stack.is_late ? .lateSignal : stack.used_signal ? .signal : .signalFree)
        showsNewImage = stack.shows_new_image
        let count = result == 0 ? Int(stack.count) : 0
        frames = UnsafeRawBufferPointer(
            start: stack.frames, count: count * MemoryLayout<stall_frame>.stride)
    }

    /// Reassembles a copy whose parts were moved.
    package init(_ header: Header, frames: UnsafeRawBufferPointer) {
        self.header = header
        self.frames = frames
        showsNewImage = false
    }

    /// A thread that could not be found.
    package init(_ thread: ThreadID, failure: CaptureError) {
        var stack = stall_stack()
        var (result, limit) = (ESRCH, Duration.zero)
        switch failure {
        case .threadEnded: break
        case .running: result = EBUSY
        case .blocksSignals: result = ECANCELED
        case .answersLater: result = EINPROGRESS
        case .hidden: result = ENODATA
        case .timedOut(_, let after): (result, limit) = (ETIMEDOUT, after)
        case .system(_, let errno):
            result = errno
            stack.failed_call = stall_open_call()
        }
        self.init(thread, limit, result, stack)
    }

    /// There is a stack.
    package var hasFrames: Bool { !frames.isEmpty }
    /// The thread has not answered, and may do so later.
    package var comesLater: Bool { header.result == EINPROGRESS }
    /// The thread has ended.
    var isOfEndedThread: Bool { header.result == ESRCH }
    /// The thread was running, or did not stay blocked.
    var isOfMovingThread: Bool { header.result == ETIMEDOUT }

    /// The stack as a value. Allocates.
    package func decoded() throws(CaptureError) -> CapturedStack {
        switch header.result {
        case 0: return stack
        case ESRCH: throw .threadEnded(header.thread)
        case EBUSY: throw .running(header.thread)
        case ECANCELED: throw .blocksSignals(header.thread)
        case EINPROGRESS: throw .answersLater(header.thread)
        case ENODATA: throw .hidden(header.thread, isDumpable: stall_is_dumpable())
        case ETIMEDOUT: throw .timedOut(header.thread, after: header.timeout)
        default:
            let call = UnsafePointer<CChar>(bitPattern: header.failedCall)
            throw .system(
                call: call.map { String(cString: $0) } ?? "capture", errno: header.result)
        }
    }

    private var stack: CapturedStack {
        CapturedStack(frames: frames, isTruncated: header.isTruncated, method: header.method)
    }
}

extension CapturedStack {
    /// A stack of `stall_frame` values. A frame of an interpreter that has gone since is left out; those of a recursion are
    /// read once.
    package init(frames: UnsafeRawBufferPointer, isTruncated: Bool, method: CaptureMethod) {
        var scripts: [PythonPlace: ScriptFrame?] = [:]
        let addresses = frames.bindMemory(to: stall_frame.self).compactMap {
            frame -> CodeAddress? in
            guard frame.kind == STALL_FRAME_PYTHON else {
                let kind = CodeAddressKind(rawValue: frame.kind.rawValue) ?? .returnAddress
                return CodeAddress(frame.address, kind, isGuessed: frame.is_guessed)
            }
            let place = PythonPlace(code: frame.address, position: frame.position)
            let script = scripts[place] ?? ScriptFrame(frame)
            scripts[place] = .some(script)
            guard let script else { return nil }
            var address = CodeAddress(frame.address, .interrupted, isGuessed: frame.is_guessed)
            address.script = script
            return address
        }
        self.init(addresses: addresses, isTruncated: isTruncated, method: method)
    }

    private struct PythonPlace: Hashable {
        var code: UInt64
        var position: UInt32
    }
}

/// A late answer. The thread executed no user code between the two instants.
package struct LateStackCopy {
    package let requested: MonotonicInstant
    package let answered: MonotonicInstant
    package let stack: StackCopy
}
