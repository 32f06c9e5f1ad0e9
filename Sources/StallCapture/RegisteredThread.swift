// Which threads may be captured, and where their stacks lie.

internal import CStackCapture
internal import Glibc
package import StallModel

/// A thread that may be captured: it registered itself, once, or was found in `/proc`.
package struct RegisteredThread: Hashable, Sendable {
    /// The thread.
    package let id: ThreadID
    /// The lowest usable address of its stack; 0, like the highest, when it was found or is not known.
    package let stackLow: UInt64
    /// One past the highest address of its stack.
    package let stackHigh: UInt64
    /// When it started, in clock ticks since boot: tells it from a later thread with the same id. 0 when not known.
    package let startTicks: UInt64

    /// Registers the calling thread. Where `/proc` cannot be read, all but its id stays 0, and its captures will say why.
    ///
    /// **Cost:** up to a millisecond on the main thread, whose stack is looked up in `/proc/self/maps`.
    package static func current() -> RegisteredThread {
        var thread = stall_thread()
        stall_thread_describe(&thread)
        return RegisteredThread(
            id: ThreadID(rawValue: thread.id), stackLow: thread.stack_low,
            stackHigh: thread.stack_high, startTicks: thread.start_ticks)
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
        return RegisteredThread(
            id: id, stackLow: 0, stackHigh: 0, startTicks: thread.start_ticks)
    }

    var asC: stall_thread {
        stall_thread(
            stack_low: stackLow, stack_high: stackHigh, start_ticks: startTicks, id: id.rawValue)
    }
}
