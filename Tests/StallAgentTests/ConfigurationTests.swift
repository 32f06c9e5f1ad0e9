import Testing

@testable import StallAgent

/// Goal: an app's mistakes are told before anything starts; an operator's word counts, and his typing errors do no harm.
@Suite struct ConfigurationTests {
    let configuration = StallMonitor.Configuration(app: "photos", version: "1", store: "a.sqlite")

    @Test func `a configuration that makes no sense is refused`() {
        #expect(throws: StallMonitor.ConfigurationError.emptyAppName) {
            _ = try StallMonitor.start(.init(app: "", version: "1"))
        }
        #expect(throws: StallMonitor.ConfigurationError.thresholdTooShort(.milliseconds(19))) {
            _ = try StallMonitor.start(
                .init(app: "photos", version: "1", threshold: .milliseconds(19)))
        }
    }

    @Test(arguments: [("1", false), ("yes", false), ("0", true), ("", true)])
    func `STALLWATCH_DISABLED switches the agent off`(value: String, isEnabled: Bool) {
        #expect(configuration.environment(["STALLWATCH_DISABLED": value]).isEnabled == isEnabled)
    }

    @Test func `the environment moves the store and sets the threshold`() {
        let changed = configuration.environment([
            "STALLWATCH_STORE": "/var/b.sqlite", "STALLWATCH_THRESHOLD_MS": "75",
        ])
        #expect(changed.store == "/var/b.sqlite" && changed.threshold == .milliseconds(75))
    }

    @Test(arguments: ["soon", "-5", "19", "", "250ms"])
    func `a threshold that cannot be read is ignored`(text: String) {
        let changed = configuration.environment(["STALLWATCH_THRESHOLD_MS": text])
        #expect(changed.threshold == .milliseconds(250))
    }
}
