import Foundation
import StallStore
import TestSupport
import Testing

@testable import StallAgent

/// Goal: an app's mistakes are reported before anything starts; operators' settings count, and their typing errors do
/// no harm.
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

    @Test(arguments: [
        (nil, "stalls.sqlite"), ("", "stalls.sqlite"), ("photos", "stalls.sqlite"),
        ("/var/lib/photos", "/var/lib/photos/stalls.sqlite"),
        ("/var/lib/photos:/var/lib/albums", "/var/lib/photos/stalls.sqlite"),
    ])
    func `a service that names no store has it in its state directory`(
        directories: String?, store: String
    ) {
        #expect(StallMonitor.Configuration.store(inStateDirectories: directories) == store)
    }

    @Test func `relative paths are those of the directory that the app starts in`() {
        var configuration = configuration
        #expect(configuration.inDirectory("/srv").store == "/srv/a.sqlite")
        #expect(configuration.inDirectory("").store == "a.sqlite", "the directory is gone")
        configuration.settings = "/etc/photos.json"
        #expect(configuration.inDirectory("/srv").settings == "/etc/photos.json")
        configuration.settings = "photos.json"
        #expect(configuration.inDirectory("/srv").settings == "/srv/photos.json")
        configuration.settings = nil
        #expect(configuration.inDirectory("/srv").settings == nil)
    }

    @Test func `limits that make no sense are brought to the nearest that do`() {
        var limits = StoreLimits(.init(bytes: 5 << 20, age: .seconds(60), reserveBytes: 0))
        #expect(limits.bytes == 5 << 20 && limits.age == .seconds(60) && limits.reserveBytes == 0)
        limits = StoreLimits(.init(bytes: 1, reserveBytes: -1))
        #expect(limits.bytes == 1 << 20 && limits.age == nil && limits.reserveBytes == 0)
    }

    /// Method: the reserve file is the limit that is visible from outside. In its own process: a monitor takes SIGPROF,
    /// which other suites of this one use.
    @Test func `the store keeps within the limits that the app configures`() async {
        await #expect(processExitsWith: .success) {
            try withTemporaryDirectory { directory in
                let store = directory.appending(path: "a.sqlite").path
                var configuration = StallMonitor.Configuration(
                    app: "limits", version: "1", store: store)
                configuration.storeLimits.reserveBytes = 123_456
                let monitor = try StallMonitor.start(configuration)
                defer { monitor.stop() }
                let reserved = eventually { () -> Int? in
                    let facts = try? FileManager.default.attributesOfItem(
                        atPath: store + "-ballast")
                    return (facts?[.size] as? Int).flatMap { $0 > 0 ? $0 : nil }
                }
                #expect(reserved == 123_456)
            }
        }
    }

    @Test(arguments: ["soon", "-5", "19", "", "250ms"])
    func `a threshold that cannot be read is ignored`(text: String) {
        let changed = configuration.environment(["STALLWATCH_THRESHOLD_MS": text])
        #expect(changed.threshold == .milliseconds(250))
    }
}
