// How a stall came to its end.

/// What ended a stall. The raw values are stored; never renumber them.
public enum StallEnding: UInt8, CaseIterable, Hashable, Sendable {
    /// The loop went on.
    case recovered = 1
    /// Its process called `exit` or returned from `main`.
    case exit = 2
    /// Its process became another program.
    case exec = 3
    /// A fatal signal: the process crashed or called `abort`. The stall lasted until then; what a crash reporter took
    /// after it does not count.
    case crash = 4
    /// Its process was gone without a word: SIGKILL, `_exit`, a power failure.
    case killed = 5
    /// Watching ended: the app stopped the monitor.
    case stop = 6

    /// The word in tables, JSON and CSV: the case's name.
    public var word: String { "\(self)" }

    /// Reads the word back.
    public init?(word: String) {
        guard let ending = Self.allCases.first(where: { $0.word == word }) else { return nil }
        self = ending
    }
}
