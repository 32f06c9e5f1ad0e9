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
