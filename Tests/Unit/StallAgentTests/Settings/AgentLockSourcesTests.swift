import Foundation
import TestSupport
import Testing

/// Goal: every lock of the agent is one that a fork waits for, so that a child can start an agent.
/// Method: reads the sources of the modules that an app's threads and the agent's share.
@Suite struct AgentLockSourcesTests {
    /// A lock that a child never takes, and why.
    private static let exempt = [
        "StallAgent/Monitor/Watch/StallMonitor+TaskExecutor.swift: Locked(JobList())":
            "a child's executor is new",
        "StallDetection/Watchdog/SuspensionProbe.swift: Mutex<AgentThread?>(nil)":
            "a child's watchdog is new",
        "StallAgent/Recording/BoundedQueue.swift: pthread_mutex_init(mutex, nil)":
            "a child's recorder is new",
    ]

    @Test func `the agent's modules have no other locks`() throws {
        let sources = Repository.root.appending(path: "Sources")
        let pattern = try Regex(
            #"\b(Locked|Mutex|NSLock)[<(].*|pthread_(mutex|rwlock|spin)_init\(.*"#)
        var found: Set<String> = []
        for module in [
            "StallAgent", "StallAgentC", "StallAgentNIO", "StallCapture", "StallCause",
            "StallDetection", "StallDoor", "StallMetrics", "StallStore", "StallSymbols",
            "StallTracing",
        ] {
            let folder = sources.appending(path: module)
            let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)
            for case let file as URL in try #require(files) where file.pathExtension == "swift" {
                let name = file.path.dropFirst(sources.path.count + 1)
                for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
                where !line.contains("//") {
                    if let match = line.firstMatch(of: pattern) {
                        found.insert("\(name): \(line[match.range])")
                    }
                }
            }
        }
        #expect(found == Set(Self.exempt.keys))
    }
}
