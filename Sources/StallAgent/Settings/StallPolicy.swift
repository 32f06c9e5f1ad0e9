// When a watched loop is called stalled, and how many reports of that are kept: what apps and operators decide.

internal import StallDetection
internal import StallModel
public import StallRunLoop

/// When a loop is called stalled.
public struct StallPolicy: Hashable, Sendable {
    /// How long the loop may be busy without progress. At least 20 ms.
    public var threshold: Duration
    /// Other thresholds, for the time in which the loop runs in these modes.
    public var modes: [LoopMode: Duration] = [:]
    /// Nothing is reported that ends before this time has passed since watching began: the app is starting.
    public var grace = Duration.zero
    /// The short timeouts that make up the threshold; 1 for a threshold that is crossed once.
    private var timeoutCount = 1

    /// One threshold, crossed once.
    public init(threshold: Duration) { self.threshold = threshold }

    /// So many short timeouts in a row without progress, as in the classic recipe of 5 x 50 ms. The stack is looked at
    /// from the first one on.
    public static func consecutive(_ count: Int, of timeout: Duration) -> StallPolicy {
        var policy = StallPolicy(threshold: timeout * max(1, count))
        policy.timeoutCount = max(1, count)
        return policy
    }

    var detection: ModePolicies {
        func policy(_ threshold: Duration) -> DetectionPolicy {
            let threshold = max(threshold, .milliseconds(20))
            return timeoutCount > 1
                ? DetectionPolicy(timeout: threshold / timeoutCount, count: timeoutCount)
                : DetectionPolicy(threshold: threshold)
        }
        let modes = modes.map { ($0.key.number, policy($0.value)) }
        return ModePolicies(
            policy(threshold), modes: Dictionary(modes) { first, _ in first }, grace: grace)
    }
}

/// What becomes of stalls in a process that a debugger is attached to.
public enum DebuggerPolicy: String, Hashable, Sendable {
    /// They are reported, under a verdict of their own that is not ranked.
    case record
    /// They are counted, and not reported.
    case ignore
}

/// How many reports are kept. What is not kept is counted, with its duration, by place.
public struct RateLimits: Hashable, Sendable {
    /// Reports an hour of stalls at one place in the app's code. After those every report costs twice as many stalls as
    /// the one before it: the 2nd, 4th, 8th multiple of the limit.
    public var perPlace = 30
    /// Reports an hour of the process, whatever the place.
    public var perHour = 600

    /// The default limits.
    public init() {}
    /// Limits of the app's own.
    public init(perPlace: Int, perHour: Int) {
        self.perPlace = perPlace
        self.perHour = perHour
    }
    /// Every stall is reported.
    public static let none = RateLimits(perPlace: .max, perHour: .max)
}
