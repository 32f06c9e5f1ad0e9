// The guarantees, and the result of each.

/// A guarantee of the agent or of stallctl.
package enum Guarantee: String, CaseIterable, Sendable {
    case blocked, running, undisturbed, causes, holders, durations
    case eventLoops = "event-loops"
    case tasks, queues, stops, kills
    case falseAlarms = "false-alarms"
    case programs, tests

    /// The guarantee as a clause.
    package var sentence: String {
        switch self {
        case .blocked: "a blocked thread's stack is captured, with its functions"
        case .running: "a running thread's stack is captured, with its functions"
        case .undisturbed: "a blocked thread's system call is not interrupted"
        case .causes: "causes are determined: sleep, CPU, lock, pipe, network"
        case .holders: "the holder of a lock is named, with its stack"
        case .durations: "durations are right"
        case .eventLoops: "event loops are watched"
        case .tasks: "Swift tasks are watched"
        case .queues: "Dispatch queues are watched"
        case .stops: "a stopped process is not stalled"
        case .kills: "a stall during which the process was killed is reported"
        case .falseAlarms: "nothing else is reported"
        case .programs: "unmodified programs are watched: stallctl run"
        case .tests: "tests that hang are found: stallctl run -- swift test"
        }
    }
}

/// Whether a guarantee holds on this machine.
package enum Verdict: String, Sendable {
    case works
    /// Something is lost.
    case limited
    case fails
    /// It could not be tried.
    case untried
}

/// The result of one guarantee.
package struct Finding: Equatable, Sendable {
    package var guarantee: Guarantee
    package var verdict: Verdict
    /// The loss, or the wrong observation; nil where it works.
    package var detail: String?

    package init(_ guarantee: Guarantee, _ verdict: Verdict, _ detail: String? = nil) {
        self.guarantee = guarantee
        self.verdict = verdict
        self.detail = detail
    }

    /// Of two results of the same guarantee, the better one.
    package func better(or other: Finding) -> Finding {
        let order: [Verdict] = [.works, .limited, .fails, .untried]
        let (own, its) = (order.firstIndex(of: verdict)!, order.firstIndex(of: other.verdict)!)
        return its < own ? other : self
    }
}
