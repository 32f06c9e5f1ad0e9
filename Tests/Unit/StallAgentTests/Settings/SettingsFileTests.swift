import Foundation
import StallModel
import TestSupport
import Testing

@testable import StallAgent

/// Goal: the operator's file is followed while it changes, and an invalid one changes nothing and is reported once.
/// Method: a real file; the test waits for the watcher's reports.
@Suite struct SettingsFileTests {
    @Test func `what is wrong with a file is said in a clause`() {
        let faults = [
            #"{"threshold_ms": 5}"#: "a threshold of 5.0 ms; expected 20 to 86400000",
            #"{"loops": {"main": {"threshold_ms": "fast"}}}"#: "loops.main.threshold",
            #"{"loops": {"main": {"modes_ms": {"tracking": 1}}}}"#: "a threshold of 1.0 ms",
            #"{"loops": {"main": {"grace_ms": -1}}}"#: "a grace of -1.0 ms",
            #"{"limits": {"per_hour": -1}}"#: "a limit of -1; expected 0 or more",
            #"{"debugger": "kill"}"#: "debugger is kill; expected record or ignore",
            #"{"threshold_ms": 250"#: "it is not JSON",
            "": "it is not JSON",
        ]
        for (json, fault) in faults {
            let error = #expect(throws: SettingsError.self) {
                try AgentSettings(json: Array(json.utf8))
            }
            #expect(
                error?.description.hasPrefix(fault) == true, "\(json): \(String(describing: error))"
            )
        }
    }

    @Test
    func
        `a file is followed, an invalid one changes nothing, and deleting it restores the settings`()
        async throws
    {
        let directory = FileManager.default.temporaryDirectory.appending(path: "\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appending(path: "settings.json")
        func write(_ text: String) throws { try Data(text.utf8).write(to: path, options: .atomic) }
        let lines = StoreConnectionTests.Lines()
        let (stream, reported) = AsyncStream.makeStream(of: AgentSettings.self)
        let file = SettingsFile(path: path.path, logger: lines.logger) { reported.yield($0) }
        defer { file.stop() }
        var settings = stream.makeAsyncIterator()
        #expect(await settings.next() == AgentSettings(), "it need not be there")
        try write(#"{"threshold_ms": 100}"#)
        #expect(await settings.next()?.thresholdMs == 100)
        // Its next report is about a later change, so the invalid content was skipped.
        try write(#"{"threshold_ms": }"#)
        while lines.count == 0 { await Task.yield() }
        try write(#"{"threshold_ms": 70, "limits": {"per_place": 3}}"#)
        let changed = await settings.next()
        #expect(changed?.thresholdMs == 70)
        #expect(changed?.limits(over: RateLimits()) == RateLimits(perPlace: 3, perHour: 600))
        #expect(lines.count == 1)
        try FileManager.default.removeItem(at: path)
        #expect(await settings.next() == AgentSettings())
    }
}
