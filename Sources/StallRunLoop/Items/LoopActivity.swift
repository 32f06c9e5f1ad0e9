// The stages of a loop's iteration: about to come, or just over. The bits are those of CFRunLoopActivity.

/// Moments of a run at which observers are called.
public struct LoopActivity: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt

    /// Wraps bits of CFRunLoopActivity.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// A run begins.
    public static let entry = LoopActivity(rawValue: 1 << 0)
    /// An iteration begins.
    public static let beforeTimers = LoopActivity(rawValue: 1 << 1)
    /// The loop is about to serve signalled sources.
    public static let beforeSources = LoopActivity(rawValue: 1 << 2)
    /// The loop is about to sleep.
    public static let beforeWaiting = LoopActivity(rawValue: 1 << 5)
    /// The loop woke up, and has not yet served what woke it.
    public static let afterWaiting = LoopActivity(rawValue: 1 << 6)
    /// A run ends.
    public static let exit = LoopActivity(rawValue: 1 << 7)
    /// All of them.
    public static let all = LoopActivity(rawValue: 0x0fff_ffff)
}

extension LoopActivity: CustomStringConvertible {
    /// The names of the activities, with bars between.
    public var description: String {
        let names: [(LoopActivity, String)] = [
            (.entry, "entry"), (.beforeTimers, "beforeTimers"), (.beforeSources, "beforeSources"),
            (.beforeWaiting, "beforeWaiting"), (.afterWaiting, "afterWaiting"), (.exit, "exit"),
        ]
        return names.filter { contains($0.0) }.map(\.1).joined(separator: "|")
    }
}
