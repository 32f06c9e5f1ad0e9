// Decides whether a loop is saturated: it makes progress and no callout takes long, but it never waits, so that new
// events queue behind the others. Pure, like StallDetector.

internal import StallModel

/// The saturation detector of one loop.
struct SaturationDetector: Sendable {
    /// When the next sample is due, near saturation. Needs no poll of its own: a loop that makes progress is polled
    /// anyway.
    private var nextSample: MonotonicInstant?
    private var spacing = Duration.zero
    private var samples = 0
    /// Since when the loop has not waited, and its count of waits at that time.
    private var busy: (since: MonotonicInstant, rests: UInt64, evidence: ThreadEvidence)?
    private var lastReport: MonotonicInstant?
    private var threshold = Duration.zero

    init() {}

    /// Evaluates one poll of the loop.
    ///
    /// - Parameter isStalled: One callout takes long. That is a stall, not saturation, and time starts again.
    mutating func poll(
        _ reading: LoopReading, rests: UInt64, _ evidence: ThreadEvidence,
        at now: MonotonicInstant, suspendedIntervals: SuspendedIntervals = SuspendedIntervals(),
        isStalled: Bool,
        policy: DetectionPolicy
    ) -> StallStep {
        guard reading.status == .busy, !isStalled, let busy, busy.rests == rests else {
            let isRestart = reading.status == .busy && !isStalled
            let step = finish(evidence, at: now)
            busy = isRestart ? (now, rests, evidence) : nil
            nextSample = isRestart ? now + policy.saturation / 2 : nil
            spacing = policy.saturation / 16
            samples = 0
            return step
        }
        threshold = policy.threshold
        var step = StallStep()
        if let due = nextSample, now >= due, samples < policy.sampleLimit {
            step.takesSample = true
            samples += 1
            nextSample = now + spacing
            spacing *= 2
        }
        let elapsed: Duration = now - busy.since
        let present = elapsed - suspendedIntervals.time(from: busy.since, to: now)
        guard present >= policy.saturation else { return step }
        // A loop that was runnable without a CPU most of the time is not saturated but starved.
        let delay = (evidence.runDelay ?? .zero) - (busy.evidence.runDelay ?? .zero)
        guard lastReport != nil || delay < present / 2 else { return step }
        if let lastReport, now < lastReport + policy.refreshInterval { return step }
        lastReport = now
        step.incident = incident(evidence, at: now, hasEnded: false)
        return step
    }

    /// Ends an open incident.
    mutating func finish(_ evidence: ThreadEvidence, at now: MonotonicInstant) -> StallStep {
        defer { lastReport = nil }
        var step = StallStep(dropsSuspicion: true)
        if lastReport != nil { step.incident = incident(evidence, at: now, hasEnded: true) }
        return step
    }

    private func incident(_ evidence: ThreadEvidence, at now: MonotonicInstant, hasEnded: Bool)
        -> StallIncident?
    {
        guard let busy else { return nil }
        let used = (evidence.cpuTime ?? .zero) - (busy.evidence.cpuTime ?? .zero)
        return StallIncident(
            began: busy.since, duration: now - busy.since, threshold: threshold,
            cpuTime: max(.zero, used),
            detectionDelay: .zero, verdict: .saturated, hasEnded: hasEnded)
    }
}
