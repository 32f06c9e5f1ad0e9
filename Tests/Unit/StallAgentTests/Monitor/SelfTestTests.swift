import CCaptureTesting
import Foundation
import Glibc
import Logging
import StallModel
import TestSupport
import Testing

@testable import StallAgent

/// Goal: an app can ask what the agent can do in its process.
/// Method: a monitor of this process; made-up surroundings for what this machine has.
@Suite struct SelfTestTests {
    static func findings(
        store: String, change: (inout StallMonitor.Configuration) -> Void = { _ in }
    ) throws -> [SelfTestFinding] {
        var configuration = StallMonitor.Configuration(app: "self-test", version: "1", store: store)
        change(&configuration)
        let monitor = try StallMonitor.start(configuration)
        defer { monitor.stop() }
        return monitor.selfTest()
    }

    @Test func `every part works in a test`() throws {
        try withTemporaryDirectory { directory in
            let findings = try Self.findings(store: directory.appending(path: "a.sqlite").path)
            #expect(findings.map(\.part) == SelfTestFinding.Part.allCases)
            for finding in findings {
                #expect(finding.verdict == .works, "\(finding)")
                #expect(finding.losses.isEmpty)
            }
        }
    }

    @Test func `a store that cannot be written is said, with what mends it`() throws {
        let findings = try Self.findings(store: "/proc/self/none/a.sqlite") {
            $0.logger.logLevel = .critical
        }
        let failed = findings.filter { $0.verdict != .works }
        #expect(failed.map(\.part) == [.store])
        #expect(failed.first?.verdict == .fails)
        #expect(failed.first?.losses.first?.what == "/proc/self: No such file or directory")
        #expect(failed.first?.losses.first?.remedy?.contains("STALLWATCH_STORE") == true)
    }

    @Test func `a folder that the first report makes is no obstacle`() throws {
        try withTemporaryDirectory { directory in
            let findings = try Self.findings(
                store: directory.appending(path: "new/folder/a.sqlite").path)
            #expect(findings.allSatisfy { $0.verdict == .works }, "\(findings)")
        }
    }

    @Test func `an agent that is disabled or stopped does nothing, and says why`() throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "a.sqlite").path
            let disabled = try Self.findings(store: store) { $0.isEnabled = false }
            #expect(disabled.allSatisfy { $0.verdict == .fails })
            #expect(disabled.first?.losses.map(\.what) == ["the agent is disabled"])
            let monitor = try StallMonitor.start(
                .init(app: "self-test", version: "1", store: store))
            monitor.stop()
            #expect(monitor.selfTest().allSatisfy { $0.verdict == .fails })
        }
    }

    @Test func `what is missing belongs to the parts that need it`() {
        let surroundings = Surroundings(
            readError: { $0.hasSuffix("/syscall") ? ENOENT : 0 },
            createError: { $0 == "/dev/shm" ? EROFS : 0 }, line: { _ in nil })
        let shortages = surroundings.shortages(storeFolder: "/var/lib/app")
        #expect(shortages.map(\.isFatal) == [true, false])
        #expect(shortages.map(\.parts) == [[.blockedStacks, .causes, .lockHolders], [.endings]])
    }

    /// 310: process_vm_readv; 297: rt_tgsigqueueinfo. x86-64's numbers.
    #if arch(x86_64)
    @Test func `a refused system call limits a part, or ends it`() async {
        await #expect(processExitsWith: .success) {
            try #require(testing_forbid_system_call(310) == 0)
            try #require(testing_forbid_system_call(297) == 0)
            try withTemporaryDirectory { directory in
                let findings = try SelfTestTests.findings(
                    store: directory.appending(path: "a.sqlite").path
                ) { $0.logger.logLevel = .critical }
                #expect(findings.first { $0.part == .runningStacks }?.verdict == .fails)
                #expect(findings.first { $0.part == .blockedStacks }?.verdict == .limited)
                #expect(findings.first { $0.part == .queues }?.verdict == .works)
            }
        }
    }
    #endif
}
