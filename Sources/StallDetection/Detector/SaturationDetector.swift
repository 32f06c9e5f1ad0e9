// Decides whether a loop is saturated: it makes progress all the time, no callout takes long, and yet it never comes to
// rest, so that whatever it is sent waits behind the rest. Pure, like StallDetector.

package import StallModel

/// One loop's detector of saturation.
package struct SaturationDetector: Sendable {
    /// While it is near saturation it wants a sample then; the watchdog looks at a moving loop anyway.
    private var nextSample: MonotonicInstant?
    private var spacing = Duration.zero
    private var samples = 0
    /// Since when the loop has not rested, and how often it had by then.
    private var busy: (since: MonotonicInstant, rests: UInt64, evidence: ThreadEvidence)?
    private var lastReport: MonotonicInstant?
    private var threshold = Duration.zero

    package init() {}

    /// Looks at the loop.
    ///
    /// - Parameter isStalled: One callout takes long: that is another matter, and time starts again.
    package mutating func poll(
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
        let present = now - busy.since - suspendedIntervals.time(from: busy.since, to: now)
        guard present >= policy.saturation else { return step }
        // A loop that waits for the CPU most of the time is behind because of that.
        let delay = (evidence.runDelay ?? .zero) - (busy.evidence.runDelay ?? .zero)
        guard lastReport != nil || delay < present / 2 else { return step }
        if let lastReport, now < lastReport + policy.refreshInterval { return step }
        lastReport = now
        step.incident = incident(evidence, at: now, hasEnded: false)
        return step
    }

    /// Ends what is open.
    package mutating func finish(_ evidence: ThreadEvidence, at now: MonotonicInstant) -> StallStep
    {
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
