/// The event that ended a stall. The raw values are stored; never renumber them.
public enum StallEnding: UInt8, CaseIterable, Hashable, Sendable {
    /// The loop made progress again.
    case recovered = 1
    /// Its process called `exit` or returned from `main`.
    case exit = 2
    /// Its process executed another program.
    case exec = 3
    /// A fatal signal: the process crashed or called `abort`. The stall lasted until the signal; the time of a crash
    /// reporter after it does not count.
    case crash = 4
    /// Its process ended without notice: SIGKILL, `_exit`, a power failure.
    case killed = 5
    /// Watching ended: the app stopped the monitor.
    case stop = 6

    /// The word in tables, JSON and CSV: the case's name.
    public var word: String {
        switch self {
        case .recovered: "recovered"
        case .exit: "exit"
        case .exec: "exec"
        case .crash: "crash"
        case .killed: "killed"
        case .stop: "stop"
        }
    }

    /// The inverse of `word`; nil for any other text.
    public init?(word: String) {
        guard let ending = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = ending
    }
}

extension StallEnding: DataWord {}

/// Whether a stall still lasts, and the event that ended it: two facts that stores and queries pass on as one.
package struct StallOutcome: Hashable, Sendable {
    package var state: StallState
    /// Nil while it lasts, or if unknown.
    package var ending: StallEnding?

    package init(_ state: StallState, _ ending: StallEnding? = nil) {
        (self.state, self.ending) = (state, ending)
    }
}

extension StallReport {
    /// Whether it still lasts, has ended, or became a hang.
    public var state: StallState {
        get { outcome.state }
        set { outcome.state = newValue }
    }

    /// The event that ended it; nil while it lasts, or if unknown.
    public var ending: StallEnding? {
        get { outcome.ending }
        set { outcome.ending = newValue }
    }
}
