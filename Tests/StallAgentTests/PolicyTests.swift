import Foundation
import StallDetection
import StallModel
import StallRunLoop
import Testing

@testable import StallAgent

/// Goal: the last word on a loop's policy has the operator, then the app at run time, then `watch`, then the configuration.
/// Method: pure values.
@Suite struct PolicyTests {
    let book: PolicyResolver
    let tracking: LoopMode = "tracking"

    init() {
        var configuration = StallMonitor.Configuration(app: "photos", version: "1")
        configuration.threshold = .milliseconds(400)
        var slow = StallPolicy(threshold: .seconds(2))
        slow.modes = [tracking: .milliseconds(50)]
        slow.grace = .seconds(5)
        configuration.policies = ["slow": slow]
        book = PolicyResolver(configuration)
    }

    func settings(_ json: String) throws -> AgentSettings {
        try AgentSettings(json: Array(json.utf8))
    }

    func threshold(_ book: PolicyResolver, _ name: String, asked: Duration? = nil) -> Double {
        book.policies(for: name, asked: asked).base.threshold.milliseconds
    }

    /// The operator's environment goes before all that the app says, his file before both.
    @Test func `the environment's threshold overrides the one given to watch`() throws {
        let configuration = StallMonitor.Configuration(app: "photos", version: "1")
            .environment(["STALLWATCH_THRESHOLD_MS": "75"])
        var book = PolicyResolver(configuration)
        #expect(threshold(book, "main", asked: .milliseconds(250)) == 75)
        book.changeThreshold(.milliseconds(500), of: "main")
        #expect(threshold(book, "main") == 75)
        book.apply(try settings(#"{"threshold_ms": 60}"#))
        #expect(threshold(book, "main", asked: .milliseconds(250)) == 60)
    }

    @Test func `each word goes before those that were said before it`() throws {
        var book = book
        #expect(threshold(book, "main") == 400 && threshold(book, "slow") == 2000)
        #expect(threshold(book, "slow", asked: .milliseconds(300)) == 300)
        book.change(StallPolicy(threshold: .milliseconds(200)), of: "slow")
        #expect(threshold(book, "slow", asked: .milliseconds(300)) == 200)
        book.apply(try settings(#"{"threshold_ms": 100, "loops": {"slow": {"threshold_ms": 70}}}"#))
        #expect(threshold(book, "slow") == 70 && threshold(book, "main") == 100)
        book.apply(AgentSettings())
        #expect(threshold(book, "slow") == 200 && threshold(book, "main") == 400)
    }

    @Test func `modes have thresholds of their own, and the rest stays when one number changes`()
        throws
    {
        var book = book
        book.apply(try settings(#"{"loops": {"slow": {"threshold_ms": 900}}}"#))
        let policies = book.policies(for: "slow", asked: nil)
        #expect(policies.base.threshold == .milliseconds(900) && policies.grace == .seconds(5))
        #expect(policies[tracking.number].threshold == .milliseconds(50))
        #expect(policies[LoopMode("default").number].threshold == .milliseconds(900))
        book.changeThreshold(.milliseconds(300), of: "slow")
        book.apply(
            try settings(#"{"loops": {"slow": {"modes_ms": {"tracking": 30}, "grace_ms": 0}}}"#))
        let later = book.policies(for: "slow", asked: nil)
        #expect(later.base.threshold == .milliseconds(300) && later.grace == .zero)
        #expect(later[tracking.number].threshold == .milliseconds(30))
    }

    @Test func `consecutive short timeouts are a threshold that is polled from the first one on`() {
        var book = book
        book.change(.consecutive(5, of: .milliseconds(50)), of: "main")
        let policy = book.policies(for: "main", asked: nil).base
        #expect(policy == DetectionPolicy(timeout: .milliseconds(50), count: 5))
    }

    @Test func `no threshold is below 20 ms`() {
        #expect(threshold(book, "main", asked: .milliseconds(1)) == 20)
    }
}
