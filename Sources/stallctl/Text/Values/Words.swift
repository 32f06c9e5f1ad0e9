// The model's enums as parts of sentences.

internal import StallModel

extension StallVerdict {
    /// Those of reports that are not ranked unless they are asked for.
    static var unranked: [StallVerdict] { all.filter { $0 != .stalled } }

    /// Why such reports are not ranked, as a sentence; nil if they are, or if the report contains the sentence.
    var sentence: String? {
        let excuse: String
        switch self {
        case .stalled: return nil
        case .starved: excuse = "the thread was runnable but not scheduled"
        case .stopped: excuse = "the whole process was stopped"
        case .throttled: excuse = "the control group's CPU quota was used up"
        case .debugger: excuse = "a debugger was attached"
        case .saturated: excuse = "no single callout took long, but the loop never waited"
        case .sampled:
            return "A profiler sampled the thread: whether it stalled is unknown (\(word))."
        // Their own sentences name the call and the reason.
        case .blocking, .expected: return nil
        }
        return "Not the app's own delay: \(excuse) (\(word))."
    }
}

extension LoopPhase {
    /// The loop's work; nil if unknown.
    var clause: String? {
        switch self {
        case .unknown: nil
        case .observer: "in an observer's callout"
        case .block: "in a performed block"
        case .source: "in a source's callout"
        case .timer: "in a timer callout"
        case .descriptor: "in a descriptor's callout"
        case .mainQueue: "in a block of the main queue"
        case .marked: "in work that the app marked"
        }
    }
}

extension StallOutcome {
    /// Appended to the sentence that states the stall's duration.
    var clause: String {
        guard state != .open else { return "; its end is not recorded yet" }
        return switch ending {
        case nil: state == .hang ? "; the process died during the stall" : ""
        case .recovered: ""
        case .exit: "; the process exited during the stall"
        case .exec: "; the process executed another program during the stall"
        case .crash: "; the process crashed during the stall"
        case .killed: "; the process was killed, or called _exit, during the stall"
        case .stop: "; monitoring stopped during the stall"
        }
    }
}

extension ThreadRole {
    /// Why the report includes the thread; follows its name.
    var clause: String {
        switch self {
        case .holder: ", holds the lock"
        case .member: ", of the same pool"
        case .other: ""
        }
    }
}

extension CauseClass {
    /// The thread's activity: the verb before the duration, and the object after it.
    var clause: (verb: String, object: String) {
        switch self {
        case .unknown: ("was busy for", "; the cause is not known")
        case .cpu: ("computed for", "")
        case .lock: ("waited", "for a lock")
        case .disk: ("waited", "for file I/O")
        case .network: ("waited", "for the network")
        case .ipc: ("waited", "for another process or thread")
        case .sleep: ("slept", "")
        case .pageFault: ("waited", "for pages to be read from disk")
        case .starved: ("waited", "for a CPU")
        case .throttled: ("waited", "for its control group's CPU quota")
        case .stopped: ("was stopped for", "")
        }
    }
}

extension LossReason {
    /// The reason for the loss of such stalls; follows their number.
    var clause: String {
        switch self {
        case .suppressed: "suppressed by the rate limit"
        case .dropped: "dropped because the writer's queue was full"
        case .unwritable: "lost because the store could not be written"
        case .evicted: "evicted to stay within the quota"
        case .callback: "because an onStall callback took too long"
        case .blind: "in which the watchdog was not scheduled"
        }
    }
}

/// `1 stall`, `2 stalls`.
func counted(_ count: Int, _ noun: String, plural: String? = nil) -> String {
    "\(count) " + (count == 1 ? noun : plural ?? noun + "s")
}

/// `a`, `a and b`, `a, b and c`.
func listed(_ items: [String]) -> String {
    guard items.count > 1 else { return items.first ?? "" }
    return items.dropLast().joined(separator: ", ") + " and " + items.last!
}
