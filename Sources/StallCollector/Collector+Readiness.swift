// Whether a push would be accepted now. A collector is alive when it answers, and ready when it commits.

internal import Synchronization

/// The known state of the store, and since when.
struct Readiness: Sendable {
    /// The last outcome, of a batch or of a query: the fault, or nil. Not ready before the first.
    var fault: String? = "not looked at yet"
    var answered = -Double.infinity
    /// When the writer was queried; nil while no query is open.
    var asked: Double?
    /// When the last batch failed; nil once one was committed.
    var failed: Double?
    /// The progress that the writer has made, and when it was seen.
    var progress = 0
    var progressed = -Double.infinity

    mutating func see(_ progress: Int, at now: Double) {
        if progress != self.progress { (self.progress, progressed) = (progress, now) }
    }

    /// The fault where neither the open query was answered nor anything else done for a time.
    func stuck(at now: Double, _ patience: Double) -> String? {
        let quiet = now - max(asked ?? now, progressed)
        return quiet >= patience ? "the writer has not answered for \(Int(quiet)) s" : nil
    }
}

extension Collector {
    /// The time that the writer may take without progress: with the second in which it is not queried again, and a
    /// prober's own pause, a failure is reported within five seconds.
    private static var patience: Double { 3 }
    /// How long the failure of a batch counts more than queries that only read.
    private static var memory: Double { 60 }

    /// Why a batch would not be committed now; nil if it would be. The writer is queried at most once a second, and one
    /// query at a time; where batches wait before the query, their outcomes answer it.
    func fault() async -> String? {
        let (now, progress) = (seconds(), writer.progress)
        let (known, asks) = readiness.withLock { state -> (String??, Bool) in
            state.see(progress, at: now)
            if now - state.answered < 1 { return (.some(state.fault), false) }
            if state.asked != nil {
                return (state.stuck(at: now, Self.patience).map { .some($0) }, false)
            }
            state.asked = now
            return (nil, true)
        }
        if let known { return known }
        if asks { ask() }
        while true {
            let time = seconds()
            let answer = readiness.withLock { state -> String?? in
                if state.answered >= now { return .some(state.fault) }
                state.see(writer.progress, at: time)
                if time - now >= Self.patience, state.progress == progress {
                    return .some(state.stuck(at: time, 0))
                }
                // It works on what came before.
                let isLate = time - (state.asked ?? now) >= Self.patience
                return isLate && state.progress != progress ? .some(state.fault) : nil
            }
            if let answer { return answer }
            await pause(0.05)
        }
    }

    private func ask() {
        Task {
            let fault = await writer.probe()
            let answered = seconds()
            readiness.withLock { state in
                state.asked = nil
                state.answered = answered
                // Where a batch failed, a query that only reads cannot know better.
                let isRecent = state.failed.map { answered - $0 < Self.memory } ?? false
                if fault != nil || writer.probeWrites || !isRecent { state.fault = fault }
            }
        }
    }

    /// Notes the outcome of a batch: the next one's is likely the same.
    func note(_ outcome: PushOutcome) {
        let now = seconds()
        readiness.withLock { state in
            switch outcome {
            case .taken(_, let added, let changed, _) where added + changed > 0:
                (state.fault, state.answered, state.failed) = (nil, now, nil)
            case .unavailable(let reason):
                (state.fault, state.answered, state.failed) = (reason, now, now)
            // Nothing was to be written.
            default: break
            }
        }
    }

    func readinessAnswer() async -> CollectorAnswer {
        guard let fault = await fault() else {
            return CollectorAnswer(200, type: "text/plain; charset=utf-8", "ready\n")
        }
        noteUnavailable(fault)
        // The reason may name the store's path, which is the operator's to know.
        return CollectorAnswer(
            503, type: "text/plain; charset=utf-8", "nothing can be stored now\n")
    }
}
