// Policies that change while the app runs.

internal import StallDetection
internal import StallModel
internal import Synchronization

extension StallMonitor {
    /// Applies another policy to the targets of a name, current and future ones. An operator's settings file takes
    /// precedence.
    public func setPolicy(_ policy: StallPolicy, for name: String) {
        changePolicies { $0.change(policy, of: name) }
    }

    /// Changes the threshold of the targets of a name; the rest of their policy stays. At least 20 ms.
    public func setThreshold(_ threshold: Duration, for name: String) {
        changePolicies { $0.changeThreshold(max(threshold, .milliseconds(20)), of: name) }
    }

    /// Applies the operator's settings file.
    func apply(_ settings: AgentSettings) {
        let debuggerPolicy = settings.debugger.flatMap(DebuggerPolicy.init(rawValue:))
        agent?.recorder.limit(
            settings.limits(over: configuration.limits),
            debuggerPolicy ?? configuration.debuggerPolicy)
        changePolicies { $0.apply(settings) }
    }

    private func changePolicies(_ change: (inout PolicyResolver) -> Void) {
        adopt(
            policies.withLock { resolver in
                change(&resolver)
                return resolver
            })
    }

    @inline(never)
    private func adopt(_ resolver: PolicyResolver) {
        for watch in watches.all {
            agent?.watchdog.setPolicies(
                resolver.policies(for: watch.name, requested: watch.threshold), of: watch.loop)
        }
    }
}
