// The answers to senders. stallctl push reads these objects; docs/fleet.md documents their keys.

internal import StallModel
internal import StallQuery

extension PushPosition {
    var answer: CollectorAnswer {
        guard let last else { return CollectorAnswer(200, ["through": through]) }
        return CollectorAnswer(
            200, type: CollectorAnswer.json,
            "{\"through\":\(through),\"last\":{\"seq\":\(last.seq),\"id\":\"\(last.id)\"}}\n")
    }
}

extension CollectorAnswer {
    /// Lines that cannot be taken: the first, which most senders look at, and all that are named.
    init(_ status: Int, faults: [LineFault], count: Int) {
        func members(_ fault: LineFault) -> String {
            "\"line\":\(fault.line),\"error\":\(fault.reason.quotedForJSON)"
        }
        let first = faults.first.map { members($0) + "," } ?? ""
        let lines = faults.map { "{\(members($0))}" }.joined(separator: ",")
        self.init(status, type: Self.json, "{\(first)\"count\":\(count),\"lines\":[\(lines)]}\n")
    }
}

extension CollectorRefusal {
    /// The answer to a batch of which nothing was stored.
    init(_ outcome: PushOutcome) {
        switch outcome {
        case .refused(let faults, let count):
            self.init(422, "some lines cannot be taken")
            (self.faults, faultCount) = (faults, count)
        case .foreign(let fault):
            self.init(403, fault.reason)
            if fault.line > 0 { (faults, faultCount) = ([fault], 1) }
        case .unavailable: self.init(503, "nothing can be stored now", retryAfter: 10)
        case .gap, .taken: self.init(500, "an outcome that is no refusal")
        }
    }
}
