// Calls that may block although the app forbids it. Another module of the package notices them (StallBlocking); the
// recorder makes them reports.

package import CLinux
internal import StallCapture
internal import StallCause
internal import StallDetection
package import StallModel

/// A call that may block, made where the app forbids that.
package struct ForbiddenCall: Sendable {
    /// The function's name.
    package var name: String
    /// The class of the wait.
    package var cause: CauseClass
    /// The address of the beacon of the work that made it, or of the Dispatch queue.
    package var target: UInt
    package var thread: ThreadID
    package var phase: LoopPhase
    package var began: MonotonicInstant
    package var length: Duration
    /// From the function's caller on.
    package var stack: CapturedStack

    package init(
        name: String, cause: CauseClass, target: UInt, thread: ThreadID, phase: LoopPhase,
        began: MonotonicInstant, length: Duration, stack: CapturedStack
    ) {
        self.name = name
        self.cause = cause
        self.target = target
        self.thread = thread
        self.phase = phase
        self.began = began
        self.length = length
        self.stack = stack
    }

    var stallCause: StallCause {
        StallCause(
            cause, confidence: 1, shares: [CauseShare(cause, 1)],
            evidence: [CauseEvidence(EvidenceName.blockingCall.rawValue, name)])
    }
}

/// Where the recorder takes such calls from. All of it is called on the recorder's thread.
package protocol ForbiddenCallSource: AnyObject, Sendable {
    var isEmpty: Bool { get }
    /// The oldest call; nil if there is none.
    func next() -> ForbiddenCall?
    /// How many were lost since the last call for lack of room.
    func takeDropped() -> Int
    /// Whether the app allows calls below this function.
    func allows(_ function: Frame) -> Bool
    /// The monitor has ended.
    func end()
}

extension StallMonitor {
    /// Makes the recorder report the calls of a source from now on, instead of an earlier one's. Returns the word that wakes
    /// it, which is never freed; nil if no agent runs here.
    package func reportCalls(
        of source: any ForbiddenCallSource
    ) -> UnsafeMutablePointer<stall_wakeup>? {
        guard let agent, !agent.hasStopped else { return nil }
        agent.recorder.reportCalls(of: source) { [weak self] target in
            self?.watches.name(of: target)
        }
        return agent.recorder.handover.wakeup
    }
}

extension [Frame] {
    /// Foundation's loop itself makes the call, and no callout: for its own locks, for example.
    var areOfFoundationsLoop: Bool {
        guard let loop = firstIndex(where: { $0.function == "__CFRunLoopRun" }) else {
            return false
        }
        return !self[..<loop].contains {
            $0.function?.hasPrefix("__CFRUNLOOP_IS_CALLING_OUT") == true
        }
    }
}

extension StallReport {
    /// Where two modules interpose one function (CWaitCalls), the first one's definition made the call.
    mutating func leaveOutFunction(called name: String, _ names: [CodeLocation: [Frame]]) {
        for index in samples.indices {
            while let frames = samples[index].locations.first.flatMap({ names[$0] }),
                frames.last?.function == name
            {
                samples[index].locations.removeFirst()
            }
        }
    }
}

extension PendingReport {
    init(_ call: ForbiddenCall, loop: String) {
        let age = MonotonicInstant(nanoseconds: stall_monotonic_ns()) - call.began
        let start = UnixTime(microseconds: stall_unix_us() - age.nanoseconds / 1000)
        let ended = call.began + call.length
        self.init(
            id: UniqueID(version7At: start), start: start,
            loop: loop, mode: "",
            incident: StallIncident(
                began: call.began, duration: call.length, threshold: .zero, cpuTime: .zero,
                detectionDelay: .zero, verdict: .blocking, hasEnded: true),
            samples: [
                RawSample(
                    offset: .zero, taken: ended, thread: call.thread, phase: call.phase, mode: 0,
                    stack: call.stack)
            ],
            members: [], others: ThreadRound(), othersCost: .zero,
            evidenceLog: EvidenceLog(observations: [], last: Counters(), lastPoll: ended),
            thread: call.thread, task: 0, openWork: [], context: [], call: call)
    }
}
