// Which policy a loop is judged by. The last word has the operator: the settings file, then the environment. Then comes
// what the app set at run time, then what it said when it asked to watch.

internal import StallDetection
internal import StallModel

/// The policies of one monitor's loops, by the names that they are watched under.
struct PolicyResolver {
    private let configuration: StallMonitor.Configuration
    private var changed: [String: StallPolicy] = [:]
    private var settings = AgentSettings()

    init(_ configuration: StallMonitor.Configuration) { self.configuration = configuration }

    /// - Parameter asked: The threshold that `watch` was told.
    func policies(for name: String, asked: Duration?) -> ModePolicies {
        var policy = policy(of: name, asked: asked)
        if let threshold = configuration.operatorThreshold { policy.threshold = threshold }
        settings.adjust(&policy, of: name)
        return policy.detection
    }

    /// Judges the loops of this name by another policy from now on.
    mutating func change(_ policy: StallPolicy, of name: String) { changed[name] = policy }

    mutating func changeThreshold(_ threshold: Duration, of name: String) {
        var policy = policy(of: name, asked: nil)
        policy.threshold = threshold
        changed[name] = policy
    }

    mutating func apply(_ settings: AgentSettings) { self.settings = settings }

    private func policy(of name: String, asked: Duration?) -> StallPolicy {
        changed[name] ?? asked.map(StallPolicy.init(threshold:)) ?? configuration.policies[name]
            ?? StallPolicy(threshold: configuration.threshold)
    }
}
