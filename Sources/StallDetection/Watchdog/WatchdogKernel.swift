// The calls of the watchdog's thread to the kernel. A simulation has a kernel of its own, and so owns the time: the
// watchdog, its loops and all that can happen to them then run on one thread (Tests/Support/StallSimulation).

package import CLinux
package import StallModel

/// The kernel, as the watchdog's thread sees it. Nothing may allocate, free, or take a lock.
package protocol WatchdogKernel: ~Copyable {
    /// The time on the monotonic clock.
    func now() -> MonotonicInstant
    /// The counters of the watchdog's own thread.
    mutating func ownCounters() -> OwnCounters
    /// Whether the process may have been stopped since the last call. True for the first one.
    mutating func wasProcessInterrupted() -> Bool
    /// Whether a thread is in its crash handler, and no loop has made progress since.
    ///
    /// - Parameter progress: When the loop last made progress.
    func isCrashing(since progress: MonotonicInstant) -> Bool
    /// The process has called exit.
    var isExiting: Bool { get }
    /// Sleeps until the wake-up word, which announces a sleep of this kind, is signalled, or until `due`; nil: without
    /// a deadline.
    func sleep(
        on wakeup: UnsafeMutablePointer<stall_wakeup>, _ kind: UInt32, until due: MonotonicInstant?)
}

/// Linux. Confined to the thread that created it: the watchdog's.
struct LinuxKernel: WatchdogKernel, ~Copyable {
    private var ownThread = SchedulerStatistics()
    private let suspensionProbe: SuspensionProbe
    private var suspensionProbeFiles: SuspensionProbe.Files?

    init(_ suspensionProbe: SuspensionProbe) { self.suspensionProbe = suspensionProbe }

    func now() -> MonotonicInstant { MonotonicInstant(nanoseconds: stall_monotonic_ns()) }

    mutating func ownCounters() -> OwnCounters { ownThread.counters() }

    /// True also as long as the probe has not started: on a busy machine the process may be stopped before.
    mutating func wasProcessInterrupted() -> Bool {
        if suspensionProbeFiles == nil { suspensionProbeFiles = suspensionProbe.files() }
        return suspensionProbeFiles?.wasInterrupted() ?? true
    }

    func isCrashing(since progress: MonotonicInstant) -> Bool {
        stall_crash_note_covers(progress.nanoseconds)
    }

    var isExiting: Bool { stall_process_record_is_exiting() }

    func sleep(
        on wakeup: UnsafeMutablePointer<stall_wakeup>, _ kind: UInt32, until due: MonotonicInstant?
    ) {
        stall_wakeup_wait(wakeup, kind, due?.nanoseconds ?? .max)
    }
}
