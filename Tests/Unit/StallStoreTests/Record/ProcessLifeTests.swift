import Foundation
import StallModel
import Testing
import TestSupport

@testable import StallStore

/// Goal: an open report becomes a hang only if its process has certainly ended; a new process with the same pid is not
/// mistaken for it.
/// Method: this process is the live one; the processes asked about differ from it in one fact each.
@Suite struct ProcessLifeTests {
    let here = ProcessLife.current()
    let own: ProcessRun

    init() throws {
        let status = try String(contentsOf: URL(filePath: "/proc/self/stat"), encoding: .utf8)
        let fields = status.split(separator: ")").last!.split(separator: " ")
        var run = ReportGenerator(seed: 1).run
        (run.host, run.bootID, run.pid) = (here.host, here.bootID, getpid())
        run.startTicks = try #require(UInt64(fields[19]))
        own = run
    }

    func isOver(_ change: (inout ProcessRun) -> Void) -> Bool {
        var run = own
        change(&run)
        return here.sight(of: run, store: "/nowhere") == .isOver
    }

    @Test func `this process is not over`() {
        #expect(own.pid == getpid() && !isOver { _ in })
    }

    @Test func `another process with the same number is another one`() {
        #expect(isOver { $0.startTicks += 1 })
    }

    @Test func `nothing survives a reboot`() {
        #expect(isOver { $0.bootID = "00000000-0000-0000-0000-000000000000" })
    }

    @Test func `a pid without a process has ended`() {
        // Beyond the largest that Linux gives.
        #expect(isOver { $0.pid = 1 << 22 + 1 })
    }

    @Test func `another machine's processes are not judged from here`() {
        #expect(
            !isOver {
                $0.host += ".elsewhere"
                $0.bootID = "another boot"
                $0.startTicks += 1
            })
    }
}
