import Logging
import StallModel
import TestSupport
import Testing

@testable import StallAgent

/// Goal: one log line states what stalled, for how long and where; systemd is notified only if it requested it.
/// Method: the metadata of a generated report; requests from environments.
@Suite struct LogMetadataTests {
    @Test func `a line has the facts of its report`() {
        var generator = ReportGenerator(seed: 7)
        var report = generator.report()
        report.loop = "http/0"
        report.activity = "GET /orders/:id"
        report.duration = .milliseconds(412)
        let metadata = report.logMetadata
        #expect(metadata["stall.loop"] == "http/0")
        #expect(metadata["stall.activity"] == "GET /orders/:id")
        #expect(metadata["stall.duration_ms"] == "412")
        #expect(metadata["stall.id"] == "\(report.id)")
        report.activity = nil
        #expect(report.logMetadata["stall.activity"] == nil)
    }

    @Test func `systemd's deadline counts for the process that it names`() throws {
        func request(_ environment: [String: String]) -> SystemdNotifier.Request? {
            SystemdNotifier.Request(environment, process: 7)
        }
        #expect(request([:]) == nil)
        #expect(request(["NOTIFY_SOCKET": "relative"]) == nil)
        #expect(request(["NOTIFY_SOCKET": "/run/notify"])?.period == nil)
        var asked = ["NOTIFY_SOCKET": "@abstract", "WATCHDOG_USEC": "400000"]
        #expect(request(asked)?.period == .milliseconds(100))
        asked["WATCHDOG_PID"] = "7"
        #expect(request(asked)?.deadline == .milliseconds(400))
        asked["WATCHDOG_PID"] = "8"
        #expect(request(asked)?.deadline == nil)
        asked["WATCHDOG_USEC"] = "soon"
        #expect(request(asked)?.deadline == nil)
    }
}
