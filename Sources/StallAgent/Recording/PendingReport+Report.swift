// Makes the recorder's report of what the watchdog handed over: addresses placed in their images, samples weighted.

internal import StallCapture
internal import StallDetection
internal import StallModel
internal import StallSymbols

extension LoopExposure {
    init(_ pending: PendingMeasure, run: ProcessRun) {
        let measure = pending.measure
        self.init(
            run: run, loop: pending.loop, threshold: pending.threshold, start: pending.start,
            watched: measure.watched, busy: measure.busy, readyDelay: measure.readyDelay,
            microStallCount: measure.microStallCount, microStallTime: measure.microStallTime,
            lengths: measure.lengths)
    }
}

extension StallReport {
    /// A report of the watchdog's records, with every address located in its image.
    ///
    /// - Parameter naming: The time that its symbols took so far.
    init(
        _ pending: PendingReport, run: ProcessRun, images: ImageTable, naming: Duration
    ) {
        let incident = pending.incident
        // Finer times are not measured, and each would take two or three bytes more in every store.
        let offsets = pending.samples.map { $0.offset.nanoseconds / 1000 * 1000 }
        let weights = sampleWeights(
            zip(pending.samples, offsets).map { $0.isLate || $0.stack == nil ? nil : $1 },
            of: incident.duration.nanoseconds)
        let culprit = pending.samples.last { !$0.isLate } ?? pending.samples.last
        self.init(
            id: pending.id, run: run, loop: pending.loop, mode: pending.mode,
            phase: culprit?.phase ?? .unknown,
            activity: heaviestLabel(pending.samples, weights) ?? culprit?.label,
            start: pending.start,
            duration: incident.duration, cpuTime: incident.cpuTime,
            delayedTime: incident.delayedTime, threshold: incident.threshold,
            detectionDelay: incident.detectionDelay,
            state: incident.outcome.state,
            verdict: incident.verdict,
            samples: pending.samples.indices.map { index in
                let sample = pending.samples[index]
                return Sample(
                    offset: .nanoseconds(offsets[index]), weight: .nanoseconds(weights[index]),
                    isLate: sample.isLate, thread: sample.thread,
                    method: sample.stack?.method, isTruncated: sample.stack?.isTruncated ?? false,
                    captureCost: .nanoseconds(sample.cost.nanoseconds / 1000 * 1000),
                    failure: sample.failure,
                    locations: sample.stack.map(images.locate) ?? [])
            },
            threads: pending.members.map { ThreadSnapshot($0, .member, images: images) }
                + pending.others.threads.filter { seen in
                    !pending.members.contains { $0.id == seen.id }
                }.map { ThreadSnapshot($0, .other, images: images) },
            skippedThreadCount: pending.others.skippedCount,
            agentTime: pending.samples.reduce(naming + pending.othersCost) { $0 + $1.cost })
        outcome = incident.outcome
    }
}

extension ThreadSnapshot {
    /// A thread with its stack, every address located in its image.
    init(
        thread: ThreadID, name: String?, role: ThreadRole, stack: CapturedStack?, failure: String?,
        images: ImageTable
    ) {
        self.init(
            thread: thread, name: name, role: role, method: stack?.method,
            isTruncated: stack?.isTruncated ?? false, failure: failure,
            locations: stack.map(images.locate) ?? [])
    }

    /// A thread from a round over many threads.
    init(_ seen: CapturedThread, _ role: ThreadRole, images: ImageTable) {
        var failure: String?
        if case .failure(let error) = seen.stack { failure = error.description }
        self.init(
            thread: seen.id, name: seen.name, role: role, stack: try? seen.stack.get(),
            failure: failure, images: images)
    }
}

/// The label of the longest part of the stall; nil if that part had none, or no sample has weight. The last sample may
/// lie just after the labelled work.
func heaviestLabel(_ samples: [RawSample], _ weights: [Int64]) -> String? {
    var sums: [String: Int64] = [:]
    for (sample, weight) in zip(samples, weights) { sums[sample.label ?? "", default: 0] += weight }
    let heaviest = sums.max { ($0.value, $1.key) < ($1.value, $0.key) }
    return heaviest.flatMap { $0.value > 0 && !$0.key.isEmpty ? $0.key : nil }
}
