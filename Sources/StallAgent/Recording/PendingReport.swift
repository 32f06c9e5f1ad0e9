// Adds function names to the evidence, which the decision on the cause needs. Runs on the recorder's thread.

internal import StallCause
internal import StallDetection
internal import StallModel
internal import StallSymbols

extension PendingReport {
    /// All locations on the stacks of threads that the stalled one may have waited for.
    func suspectLocations(_ images: ImageTable) -> [CodeLocation] {
        evidenceLog.observations.compactMap(\.self).flatMap { observation in
            observation.suspects.flatMap { $0.stack.map(images.locate) ?? [] }
        }
    }

    /// Decides the cause, and adds it and the holders' stacks to the report.
    func explain(
        _ report: inout StallReport, images: ImageTable, frames: ([CodeLocation]) -> [Frame]
    ) {
        if let call {
            report.cause = call.stallCause
            return
        }
        // There may be fewer observations than samples: a thread may have finished its work before its evidence was
        // read.
        let count = min(report.samples.count, evidenceLog.observations.count)
        func functions(_ locations: [CodeLocation]) -> [String] {
            frames(locations).map { $0.function ?? "" }
        }
        let samples = zip(report.samples.suffix(count), evidenceLog.observations.suffix(count))
            .compactMap { sample, observation -> CauseSample? in
                guard !sample.isLate, var observation else { return nil }
                for index in observation.suspects.indices {
                    guard let stack = observation.suspects[index].stack else { continue }
                    observation.suspects[index].functions = functions(images.locate(stack))
                }
                return CauseSample(
                    weight: sample.weight, observation: observation,
                    functions: functions(sample.locations))
            }
        let first = evidenceLog.observations.lazy.compactMap(\.self).first
        let (last, lastPoll) = lastCounters
        let explained = explainStall(
            CauseFacts(
                verdict: report.verdict, duration: report.duration, cpuTime: report.cpuTime,
                ended: incident.hasEnded ? incident.began + incident.duration : nil,
                samples: samples,
                growth: first.map { last.growth(since: $0.counters) } ?? Counters(),
                observed: first.map { lastPoll - $0.at } ?? .zero))
        report.cause = explained.cause
        let openWork = openWork.map(\.renamed)
        report.cause?.evidence += context + openWork.map(\.evidence)
        // A span of the same task names it as a label would.
        if report.activity == nil { report.activity = openWork.first { $0.isOwn }?.name }
        let holders = explained.holders.map { holder in
            ThreadSnapshot(
                thread: holder.owner, name: holder.name, role: .holder, stack: holder.stack,
                failure: holder.failure, images: images)
        }
        let known = Set(holders.map(\.thread))
        report.threads = holders + report.threads.filter { !known.contains($0.thread) }
    }

    /// The counters at the end of the stall. If the last poll came long after the end, its counters include other work;
    /// then those of the last sample are used.
    private var lastCounters: (Counters, at: MonotonicInstant) {
        let ended = incident.began + incident.duration
        if incident.hasEnded, evidenceLog.lastPoll > ended + .milliseconds(20),
            let sample = evidenceLog.observations.last ?? nil
        {
            return (sample.counters, sample.at)
        }
        return (evidenceLog.last, evidenceLog.lastPoll)
    }
}
