// The threads that can be captured, with the bounds of their stacks.

package import CLinux
internal import CStackCapture
internal import Glibc
package import StallModel

/// A thread that can be captured: it registered itself, or was found in `/proc`.
package struct RegisteredThread: Sendable {
    /// The thread.
    package let id: ThreadID
    /// The lowest usable address of its stack; 0, like the highest, if it was found or the bounds are unknown.
    let stackLow: UInt64
    /// One past the highest address of its stack.
    package let stackHigh: UInt64
    /// When it started, in clock ticks since boot: distinguishes it from a later thread with the same id. 0 if unknown.
    package let startTicks: UInt64
    /// Its open files, for as long as it can be captured.
    private let files: Files?

    /// Files in `/proc` opened at its registration: a process that drops its privileges could not open them later.
    private final class Files: @unchecked Sendable {
        // Unchecked because of the pointer: its target can be used from any thread until `deinit`.
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

    /// Registers the calling thread. If `/proc` cannot be read, all but its id is 0, and captures of it report why.
    ///
    /// **Cost:** up to a millisecond on the main thread, whose stack is looked up in `/proc/self/maps`; a descriptor.
    package static func current() -> RegisteredThread {
        var thread = stall_thread()
        stall_thread_describe(&thread)
        return RegisteredThread(thread)
    }

    /// Finds another thread of this process, registered or not: a pool's worker, a lock's holder.
    ///
    /// - Throws: ``CaptureError/threadEnded(_:)``, or ``CaptureError/system(call:errno:)`` if `/proc` cannot be read.
    ///
    /// **Cost:** one file in `/proc`, 7 us. If it is captured while it runs, finding its stack costs the thread one
    /// more system call.
    package static func found(_ id: ThreadID) throws(CaptureError) -> RegisteredThread {
        var thread = stall_thread()
        let errno = stall_thread_describe_other(id.rawValue, &thread)
        guard errno != ESRCH else { throw .threadEnded(id) }
        guard errno == 0 else { throw .system(call: "open /proc/self/task", errno: errno) }
        return RegisteredThread(thread)
    }

    /// The open files; nil for a thread that was found. Valid as long as this value, or as a `retain` of their own.
    package var keptFiles: UnsafeMutablePointer<stall_thread_files>? { files?.thread.files }

    /// Calls `body` with the thread as a C struct, while its files stay open.
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
