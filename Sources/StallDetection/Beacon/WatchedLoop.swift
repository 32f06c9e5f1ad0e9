// A loop under watch, and what was seen of it while it was under suspicion.

package import StallModel

/// One loop that a watchdog looks after.
package final class WatchedLoop: Sendable {
    /// What it is watched under.
    package let name: String
    package let beacon: LoopBeacon
    /// The policies that it is watched under at first; `Watchdog.setPolicies` changes them.
    package let policies: ModePolicies
    /// Answers the watchdog's questions about this loop's thread, and hears of its stalls.
    package let responder: any StallResponder

    package init(
        name: String, beacon: LoopBeacon, policies: ModePolicies, responder: any StallResponder
    ) {
        self.name = name
        self.beacon = beacon
        self.policies = policies
        self.responder = responder
    }
}

/// What a sample is taken of.
package enum IncidentKind: UInt8, Hashable, Sendable {
    /// One callout that takes long.
    case stall = 0
    /// Many short ones, without a rest.
    case saturation = 1
}

/// What StallAgent does for one loop when the watchdog asks. Called on the watchdog's thread only, while the loop's
/// thread may hold any lock of the app, the heap's included: nothing may be allocated, freed or waited for.
package protocol StallResponder: AnyObject, Sendable {
    /// Watching begins. What is needed later is made ready; here, and only here, it may allocate.
    func prepare()
    /// The beacon says busy for long enough to be suspected: set it right if there is a reason not to believe it. False
    /// when that is not known yet.
    func correct(_ reading: LoopReading, at now: MonotonicInstant) -> Bool
    /// The loop itself says when it is busy, so that its own count of long spans can be believed.
    var isExact: Bool { get }
    /// What the kernel says of the loop's thread now.
    ///
    /// - Parameter isSuspect: The loop may be stalled: everything is wanted. Otherwise the thread's counters will do.
    func evidence(isSuspect: Bool) -> ThreadEvidence
    /// Takes a sample of the thread and hands it over.
    ///
    /// - Parameters:
    ///   - reading: What the beacon said. A sample of a loop that has moved on meanwhile is late.
    ///   - limit: How long it may take: other loops are not looked at meanwhile.
    func takeSample(_ kind: IncidentKind, of reading: LoopReading, within limit: Duration)
    /// Hands over the stack of a thread that had not answered when its samples were taken, if its answer has come: then
    /// it is true.
    func collectLateStack() -> Bool
    /// The samples since the last call are of no incident, or of one that is over.
    func forgetSamples(_ kind: IncidentKind)
    /// A stall began, goes on, or ended. Its samples were handed over before.
    func stallChanged(_ incident: StallIncident)
    /// A stretch of watched time is over. False when it cannot be taken now: then the next one begins as this did.
    func measured(from first: LoopCounters, to last: LoopCounters) -> Bool
    /// Nothing more will be asked.
    func unwatched()
}

extension StallResponder {
    package func prepare() {}
    package var isExact: Bool { true }
    package func correct(_ reading: LoopReading, at now: MonotonicInstant) -> Bool { true }
    package func collectLateStack() -> Bool { false }
    package func forgetSamples(_ kind: IncidentKind) {}
    package func unwatched() {}
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

    package init(
        offset: Duration, taken: MonotonicInstant, isLate: Bool = false, thread: ThreadID,
        phase: LoopPhase, mode: UInt32, label: String? = nil, stack: CapturedStack? = nil,
        failure: String? = nil, cost: Duration = .zero
    ) {
        self.offset = offset
        self.taken = taken
        self.isLate = isLate
        self.thread = thread
        self.phase = phase
        self.mode = mode
        self.label = label
        self.stack = stack
        self.failure = failure
        self.cost = cost
    }
    /// Completes a sample whose thread answered late, if it is of the time that the answer is true for.
    package mutating func complete(with late: LateStack) {
        guard stack == nil, failure != nil else { return }
        guard taken <= late.answered, late.asked <= taken + cost else { return }
        (stack, failure, isLate) = (late.stack, nil, late.isLate)
    }
}
