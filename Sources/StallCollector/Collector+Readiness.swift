// Whether a push would be accepted now. A collector is alive when it answers, and ready when it commits.

internal import Synchronization

/// The known state of the store, and since when.
struct Readiness: Sendable {
    /// The last answer of the writer: the fault, or nil. Not ready before the first.
    var fault: String? = "not looked at yet"
    var answered = -Double.infinity
    /// When the writer was queried; nil while no query is open.
    var asked: Double?
}

extension Collector {
    /// The time that the writer may take: with the second in which it is not queried again, and a prober's own pause, a
    /// failure is reported within five seconds.
    private static var patience: Double { 3 }

    /// Why a batch would not be committed now; nil if it would be. The writer is queried at most once a second, and one
    /// query at a time.
    func fault() async -> String? {
        let now = seconds()
        let (known, asks) = readiness.withLock { state -> (String??, Bool) in
            if let asked = state.asked {
                let isLate = now - asked >= Self.patience
                return (isLate ? .some(Self.stuck(for: now - asked)) : nil, false)
            }
            if now - state.answered < 1 { return (.some(state.fault), false) }
            state.asked = now
            return (nil, true)
        }
        if let known { return known }
        let deadline = now + Self.patience
        if asks {
            Task {
                let fault = await writer.probe()
                let answered = seconds()
                readiness.withLock { $0 = Readiness(fault: fault, answered: answered) }
            }
        }
        while seconds() < deadline {
            let answer = readiness.withLock { $0.asked == nil ? .some($0.fault) : nil as String?? }
            if let answer { return answer }
            await pause(0.05)
        }
        return Self.stuck(for: Self.patience)
    }

    private static func stuck(for time: Double) -> String {
        "the writer has not answered for \(Int(time)) s"
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
