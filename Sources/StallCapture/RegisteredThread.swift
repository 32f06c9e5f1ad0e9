// Which threads may be captured, and where their stacks lie.

internal import CStackCapture
package import StallModel

/// A thread that agreed to be captured: it registered itself, once.
package struct RegisteredThread: Hashable, Sendable {
    /// The thread.
    package let id: ThreadID
    /// The lowest usable address of its stack.
    package let stackLow: UInt64
    /// One past the highest address of its stack.
    package let stackHigh: UInt64
    /// When it started, in clock ticks since boot: tells it from a later thread with the same id.
    package let startTicks: UInt64

    /// Registers the calling thread.
    ///
    /// - Throws: ``CaptureError/system(call:errno:)`` when `/proc` cannot be read.
    ///
    /// **Cost:** up to a millisecond on the main thread, whose stack is looked up in `/proc/self/maps`.
    package static func current() throws(CaptureError) -> RegisteredThread {
        var thread = stall_thread()
        let errno = stall_thread_describe(&thread)
        guard errno == 0 else { throw .system(call: "pthread_getattr_np", errno: errno) }
        return RegisteredThread(
            id: ThreadID(rawValue: thread.id), stackLow: thread.stack_low,
            stackHigh: thread.stack_high, startTicks: thread.start_ticks)
    }

    var asC: stall_thread {
        stall_thread(
            stack_low: stackLow, stack_high: stackHigh, start_ticks: startTicks, id: id.rawValue)
    }
}
