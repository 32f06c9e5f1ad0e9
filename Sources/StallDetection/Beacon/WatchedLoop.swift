// A watched loop, the protocol through which the watchdog queries its thread, and the samples of a suspected stall.

package import StallModel
internal import Synchronization

/// One loop that a watchdog polls.
package final class WatchedLoop: Sendable {
    /// The target's name.
    package let name: String
    package let beacon: LoopBeacon
    /// The initial policies; `Watchdog.setPolicies` changes them.
    package let policies: ModePolicies
    /// Answers the watchdog's queries about this loop's thread and receives its stalls.
    package let responder: any StallResponder
    private let stage = Atomic<UInt8>(Stage.ended)
    /// The loop's own count of long spans at the request.
    private let stallsBefore: UInt64

    private enum Stage {
        static let ended: UInt8 = 0
        static let requested: UInt8 = 1
        static let watched: UInt8 = 2
    }

    package init(
        name: String, beacon: LoopBeacon, policies: ModePolicies, responder: any StallResponder
    ) {
        self.name = name
        self.beacon = beacon
        self.policies = policies
        self.responder = responder
        stallsBefore = beacon.stallCount
    }

    func request() { stage.store(Stage.requested, ordering: .sequentiallyConsistent) }

    /// The watchdog has the request. False if the watch was ended before.
    func take() -> Bool { replace(Stage.requested, by: Stage.watched) }

    /// Ends the watch, whatever the loop has counted. False if the watchdog has it.
    func abandon() -> Bool { replace(Stage.requested, by: Stage.ended) }

    /// Ends the watch. False if the watchdog has it, or must see what the loop has counted meanwhile.
    func cancel() -> Bool {
        beacon.stallCount == stallsBefore && replace(Stage.requested, by: Stage.ended)
    }

    private func replace(_ old: UInt8, by new: UInt8) -> Bool {
        stage.compareExchange(expected: old, desired: new, ordering: .sequentiallyConsistent)
            .exchanged
    }
}

/// The kind of incident that a sample is evidence of.
package enum IncidentKind: UInt8, Hashable, Sendable {
    /// One callout that takes long.
    case stall = 0
    /// Many short callouts without a wait in between.
    case saturation = 1
}

/// The actions of StallAgent for one loop at the watchdog's request. Called on the watchdog's thread only, while the
/// loop's
/// thread may hold any lock of the app, the heap's included: implementations must not allocate, free or wait.
package protocol StallResponder: AnyObject, Sendable {
    /// Watching begins. Prepares what later calls need; only this method may allocate. Thousands may begin in a second.
    func prepare()
    /// The beacon has been busy for long enough to be suspected. Corrects the beacon if the loop is not busy after all.
    /// False while that is not known yet.
    func correct(_ reading: LoopReading, at now: MonotonicInstant) -> Bool
    /// Whether the loop itself publishes when it is busy, so that its own count of long spans is exact.
    var isExact: Bool { get }
    /// Since when this busy span is known to be one piece of work; nil if it is from its beginning.
    func undividedSince(_ reading: LoopReading, at now: MonotonicInstant) -> MonotonicInstant?
    /// The kernel's evidence about the loop's thread now.
    ///
    /// - Parameter isSuspect: The loop may be stalled: read everything. Otherwise the thread's counters suffice.
    func evidence(isSuspect: Bool) -> ThreadEvidence
    /// Samples the thread and hands the sample over.
    ///
    /// - Parameters:
    ///   - reading: The beacon's content. A sample is late if the loop has made progress since.
    ///   - limit: How long it may take: no other loop is polled meanwhile.
    func takeSample(_ kind: IncidentKind, of reading: LoopReading, within limit: Duration)
    /// Hands over the stack of a thread that had not answered in time. True if the answer has come.
    func collectLateStack() -> Bool
    /// The samples since the last call belong to no incident, or to one that is over.
    func discardSamples(_ kind: IncidentKind)
    /// A stall began, continues, or ended. Its samples were handed over before.
    func stallChanged(_ incident: StallIncident)
    /// An interval of watched time is over. False if it cannot be accepted now: the next interval then has the same
    /// start.
    func measured(from first: LoopCounters, to last: LoopCounters) -> Bool
    /// Watching has ended; no call follows.
    func unwatched()
}

extension StallResponder {
    package func prepare() {}
    package var isExact: Bool { true }
    package func undividedSince(
        _ reading: LoopReading, at now: MonotonicInstant
    ) -> MonotonicInstant? { nil }
    package func correct(_ reading: LoopReading, at now: MonotonicInstant) -> Bool { true }
    package func collectLateStack() -> Bool { false }
    package func discardSamples(_ kind: IncidentKind) {}
    package func unwatched() {}
}

/// One sample of a suspected thread, before symbolication.
package struct RawSample: Equatable, Sendable {
    /// Time since the loop last made progress.
    package var offset: Duration
    package var taken: MonotonicInstant
    /// The loop had made progress before the capture was complete.
    package var isLate = false
    package var thread: ThreadID
    package var phase: LoopPhase
    package var mode: UInt32
    package var label: String?
    /// Nil if the capture failed.
    package var stack: CapturedStack?
    /// Why the capture failed.
    package var failure: String?
    /// How long the sample kept the watchdog busy.
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
    /// Completes a sample whose thread answered late, if the answer is from the time of the sample.
    package mutating func complete(with late: LateStack) {
        guard stack == nil, failure != nil else { return }
        guard taken <= late.answered, late.requested <= taken + cost else { return }
        (stack, failure, isLate) = (late.stack, nil, late.isLate)
    }
}
