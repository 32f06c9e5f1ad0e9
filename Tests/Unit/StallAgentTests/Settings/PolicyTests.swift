import Foundation
import StallDetection
import StallModel
import StallRunLoop
import Testing

@testable import StallAgent

/// Goal: the last word on a loop's policy has the operator, then the app at run time, then `watch`, then the configuration.
/// Method: pure values.
@Suite struct PolicyTests {
    let resolver: PolicyResolver
    let tracking: LoopMode = "tracking"

    init() {
        var configuration = StallMonitor.Configuration(app: "photos", version: "1")
        configuration.threshold = .milliseconds(400)
        var slow = StallPolicy(threshold: .seconds(2))
        slow.modes = [tracking: .milliseconds(50)]
        slow.grace = .seconds(5)
        configuration.policies = ["slow": slow]
        resolver = PolicyResolver(configuration)
    }

    func settings(_ json: String) throws -> AgentSettings {
        try AgentSettings(json: Array(json.utf8))
    }

    func threshold(_ resolver: PolicyResolver, _ name: String, requested: Duration? = nil) -> Double
    {
        resolver.policies(for: name, requested: requested).base.threshold.milliseconds
    }

    /// The operator's environment goes before all that the app says, his file before both.
    @Test func `the environment's threshold overrides the one given to watch`() throws {
        let configuration = StallMonitor.Configuration(app: "photos", version: "1")
            .environment(["STALLWATCH_THRESHOLD_MS": "75"])
        var resolver = PolicyResolver(configuration)
        #expect(threshold(resolver, "main", requested: .milliseconds(250)) == 75)
        resolver.changeThreshold(.milliseconds(500), of: "main")
        #expect(threshold(resolver, "main") == 75)
        resolver.apply(try settings(#"{"threshold_ms": 60}"#))
        #expect(threshold(resolver, "main", requested: .milliseconds(250)) == 60)
    }

    @Test func `each word goes before those that were said before it`() throws {
        var resolver = resolver
        #expect(threshold(resolver, "main") == 400 && threshold(resolver, "slow") == 2000)
        #expect(threshold(resolver, "slow", requested: .milliseconds(300)) == 300)
        resolver.change(StallPolicy(threshold: .milliseconds(200)), of: "slow")
        #expect(threshold(resolver, "slow", requested: .milliseconds(300)) == 200)
        resolver.apply(
            try settings(#"{"threshold_ms": 100, "loops": {"slow": {"threshold_ms": 70}}}"#))
        #expect(threshold(resolver, "slow") == 70 && threshold(resolver, "main") == 100)
        resolver.apply(AgentSettings())
        #expect(threshold(resolver, "slow") == 200 && threshold(resolver, "main") == 400)
    }

    @Test func `modes have thresholds of their own, and the rest stays when one number changes`()
        throws
    {
        var resolver = resolver
        resolver.apply(try settings(#"{"loops": {"slow": {"threshold_ms": 900}}}"#))
        let policies = resolver.policies(for: "slow", requested: nil)
        #expect(policies.base.threshold == .milliseconds(900) && policies.grace == .seconds(5))
        #expect(policies[tracking.number].threshold == .milliseconds(50))
        #expect(policies[LoopMode("default").number].threshold == .milliseconds(900))
        resolver.changeThreshold(.milliseconds(300), of: "slow")
        resolver.apply(
            try settings(#"{"loops": {"slow": {"modes_ms": {"tracking": 30}, "grace_ms": 0}}}"#))
        let later = resolver.policies(for: "slow", requested: nil)
        #expect(later.base.threshold == .milliseconds(300) && later.grace == .zero)
        #expect(later[tracking.number].threshold == .milliseconds(30))
    }

    @Test func `consecutive short timeouts are a threshold that is polled from the first one on`() {
        var resolver = resolver
        resolver.change(.consecutive(5, of: .milliseconds(50)), of: "main")
        let policy = resolver.policies(for: "main", requested: nil).base
        #expect(policy == DetectionPolicy(timeout: .milliseconds(50), count: 5))
    }

    @Test func `no threshold is below 20 ms`() {
        #expect(threshold(resolver, "main", requested: .milliseconds(1)) == 20)
    }
}
