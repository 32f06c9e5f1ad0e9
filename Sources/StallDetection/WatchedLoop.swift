// A loop under watch, and what was seen of it while it was under suspicion.

package import StallModel

/// One loop that a watchdog looks after.
package final class WatchedLoop: Sendable {
    package let beacon: LoopBeacon
    /// The policies that it is watched under at first; `Watchdog.setPolicies` changes them.
    package let policies: ModePolicies
    /// Answers the watchdog's questions about this loop's thread, and hears of its stalls.
    package let responder: any StallResponder

    package init(beacon: LoopBeacon, policies: ModePolicies, responder: any StallResponder) {
        self.beacon = beacon
        self.policies = policies
        self.responder = responder
    }
}

/// What StallAgent does for one loop when the watchdog asks. Called on the watchdog's thread only.
package protocol StallResponder: AnyObject, Sendable {
    /// The beacon says busy for long enough to be suspected: set it right if there is a reason not to believe it.
    func correct(_ reading: LoopReading, at now: MonotonicInstant)
    /// What the kernel says of the loop's thread now.
    ///
    /// - Parameter isSuspect: The loop may be stalled: everything is wanted. Otherwise the thread's counters will do.
    func evidence(isSuspect: Bool) -> ThreadEvidence
    /// The thread's stack now, or why there is none.
    ///
    /// - Parameter limit: How long it may take: other loops are not looked at meanwhile.
    func captureStack(within limit: Duration) -> Result<CapturedStack, any Error>
    /// A stall began, goes on, or ended. `samples` are all that were taken of it so far.
    func stallChanged(_ incident: StallIncident, samples: [RawSample])
    /// A stretch of watched time is over. False when it cannot be taken now: then the next one begins as this did.
    func measured(_ measure: LoopMeasure) -> Bool
}

extension StallResponder {
    package func correct(_ reading: LoopReading, at now: MonotonicInstant) {}
}

/// One look at a suspected thread, before anything is symbolized.
package struct RawSample: Hashable, Sendable {
    /// When it was taken, from when the loop last made progress.
    package var offset: Duration
    package var taken: MonotonicInstant
    /// The loop had moved on when the capture was complete.
    package var isLate = false
    package var thread: ThreadID
    package var phase: LoopPhase
    package var mode: UInt32
    package var label: String?
    /// The stack, or nil when it could not be taken.
    package var stack: CapturedStack?
    /// Why it could not be taken.
    package var failure: String?
    /// How long taking it kept the watchdog busy.
    package var cost = Duration.zero
}
