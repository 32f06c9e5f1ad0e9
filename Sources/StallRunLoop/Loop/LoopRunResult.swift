/// Why a run ended. The raw values are those of CFRunLoopRunResult.
public enum LoopRunResult: Int, Hashable, Sendable {
    /// The mode has no source, timer or block.
    case finished = 1
    /// `stop()` was called.
    case stopped = 2
    /// The time was up.
    case timedOut = 3
    /// A source was handled, and the caller had asked to return after that.
    case handledSource = 4
}
