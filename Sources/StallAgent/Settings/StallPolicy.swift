// When a loop is called stalled, and how many reports are recorded, as apps and operators configure it.

internal import StallDetection
internal import StallModel
public import StallRunLoop

/// When a loop is called stalled.
public struct StallPolicy: Hashable, Sendable {
    /// How long the loop may be busy without progress. At least 20 ms.
    public var threshold: Duration
    /// Thresholds for the time in which the loop runs in these modes.
    public var modes: [LoopMode: Duration] = [:]
    /// Stalls that end before this time has passed since watching began are not reported: the app is starting.
    public var grace = Duration.zero
    /// The number of short timeouts that make up the threshold; 1 for a single threshold.
    private var timeoutCount = 1

    /// One threshold, exceeded once.
    public init(threshold: Duration) { self.threshold = threshold }

    /// A number of short timeouts in a row without progress, for example 5 x 50 ms. Sampling starts with the first
    /// timeout.
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

/// How stalls are handled while a debugger is attached to the process.
public enum DebuggerPolicy: String, Hashable, Sendable {
    /// They are reported, with a verdict of their own that is not ranked.
    case record
    /// They are counted, but not reported.
    case ignore
}

/// Limits on the number of reports. Suppressed stalls are counted, with their duration, by code location.
public struct RateLimits: Hashable, Sendable {
    /// Reports per hour at one location in the app's code. Beyond it, each further report takes twice as many stalls as
    /// the one before: it comes at the 2nd, 4th, 8th multiple of the limit.
    public var perPlace = 30
    /// Reports per hour of the process, at all locations.
    public var perHour = 600

    /// The default limits.
    public init() {}
    /// Creates limits.
    public init(perPlace: Int, perHour: Int) {
        self.perPlace = perPlace
        self.perHour = perHour
    }
    /// Every stall is reported.
    public static let none = RateLimits(perPlace: .max, perHour: .max)
}
