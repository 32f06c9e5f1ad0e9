// Which threads may be captured, and where their stacks lie.

package import CLinux
internal import CStackCapture
internal import Glibc
package import StallModel

/// A thread that may be captured: it registered itself, once, or was found in `/proc`.
package struct RegisteredThread: Sendable {
    /// The thread.
    package let id: ThreadID
    /// The lowest usable address of its stack; 0, like the highest, when it was found or is not known.
    let stackLow: UInt64
    /// One past the highest address of its stack.
    package let stackHigh: UInt64
    /// When it started, in clock ticks since boot: tells it from a later thread with the same id. 0 when not known.
    package let startTicks: UInt64
    /// What is kept open of it, for as long as it may be captured.
    private let files: Files?

    /// The files of `/proc` that its registration opened: a process that gives up its rights could not open them later.
    private final class Files: @unchecked Sendable {
        // Unchecked because a pointer is: what is behind it may be used from any thread until `deinit`.
        let thread: stall_thread
        init(_ thread: stall_thread) { self.thread = thread }
        deinit {
            var thread = thread
            stall_thread_forget(&thread)
        }
    }

    private init(_ thread: stall_thread) {
        id = ThreadID(rawValue: thread.id)
        stackLow = thread.stack_low
        stackHigh = thread.stack_high
        startTicks = thread.start_ticks
        files = thread.files == nil ? nil : Files(thread)
    }

    /// Registers the calling thread. Where `/proc` cannot be read, all but its id stays 0, and its captures will say
    /// why.
    ///
    /// **Cost:** up to a millisecond on the main thread, whose stack is looked up in `/proc/self/maps`; a descriptor.
    package static func current() -> RegisteredThread {
        var thread = stall_thread()
        stall_thread_describe(&thread)
        return RegisteredThread(thread)
    }

    /// Finds another thread of this process, which need not have registered itself: a pool's worker, a lock's holder.
    ///
    /// - Throws: ``CaptureError/threadEnded(_:)``, or ``CaptureError/system(call:errno:)`` when `/proc` cannot be read.
    ///
    /// **Cost:** one file of `/proc`, 7 us. When it is captured while it runs, its stack costs it a system call more.
    package static func found(_ id: ThreadID) throws(CaptureError) -> RegisteredThread {
        var thread = stall_thread()
        let errno = stall_thread_describe_other(id.rawValue, &thread)
        guard errno != ESRCH else { throw .threadEnded(id) }
        guard errno == 0 else { throw .system(call: "open /proc/self/task", errno: errno) }
        return RegisteredThread(thread)
    }

    /// The files that are kept open; nil of a thread that was found. Valid for as long as this value, or a `retain` of
    /// its own.
    package var keptFiles: UnsafeMutablePointer<stall_thread_files>? { files?.thread.files }

    /// Calls `body` with the thread as C sees it, while its files stay open.
    func withC<Result>(_ body: (UnsafePointer<stall_thread>) -> Result) -> Result {
        withExtendedLifetime(files) {
            var thread = files?.thread ?? stall_thread()
            thread.id = id.rawValue
            thread.stack_low = stackLow
            thread.stack_high = stackHigh
            thread.start_ticks = startTicks
            return body(&thread)
        }
    }
}

extension RegisteredThread: Hashable {
    package static func == (one: RegisteredThread, other: RegisteredThread) -> Bool {
        (one.id, one.stackLow, one.stackHigh, one.startTicks)
            == (other.id, other.stackLow, other.stackHigh, other.startTicks)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(id)
        hasher.combine(startTicks)
    }
}
