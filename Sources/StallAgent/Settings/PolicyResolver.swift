// Resolves the policy of a loop. Precedence: the operator's settings file, the environment, the app's changes at run
// time, the value passed to `watch`.

internal import StallDetection
internal import StallModel

/// The policies of one monitor's loops, by target name.
struct PolicyResolver {
    private let configuration: StallMonitor.Configuration
    private var changed: [String: StallPolicy] = [:]
    private var settings = AgentSettings()

    init(_ configuration: StallMonitor.Configuration) { self.configuration = configuration }

    /// - Parameter requested: The threshold passed to `watch`.
    func policies(for name: String, requested: Duration?) -> ModePolicies {
        var policy = policy(of: name, requested: requested)
        if let threshold = configuration.operatorThreshold { policy.threshold = threshold }
        settings.adjust(&policy, of: name)
        return policy.detection
    }

    /// Applies another policy to the loops of this name from now on.
    mutating func change(_ policy: StallPolicy, of name: String) { changed[name] = policy }

    mutating func changeThreshold(_ threshold: Duration, of name: String) {
        var policy = policy(of: name, requested: nil)
        policy.threshold = threshold
        changed[name] = policy
    }

    mutating func apply(_ settings: AgentSettings) { self.settings = settings }

    private func policy(of name: String, requested: Duration?) -> StallPolicy {
        changed[name] ?? requested.map(StallPolicy.init(threshold:)) ?? configuration.policies[name]
            ?? StallPolicy(threshold: configuration.threshold)
    }
}
