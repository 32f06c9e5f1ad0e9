import Foundation
import StallModel
import Testing

@testable import stallctl

/// Goal: a hung test is stored as it was seen: its stack, what it waits for, and no more.
/// Method: reports made by hand.
@Suite struct HangStallTests {
    let run = ProcessRun(
        id: UniqueID(version7At: UnixTime(microseconds: 1)), app: "Shop", version: "0",
        buildID: nil, host: "h", pid: 7, bootID: "b", startTicks: 5,
        started: UnixTime(microseconds: 9_000_000))
    let test = TestDescription(
        id: "M.S/sums(of:)/A.swift:6:2", name: "sums(of:)", fileID: "M/A.swift", path: "/p/A.swift",
        line: 6)

    func frame(_ function: String, _ offset: UInt64, isInlined: Bool = false) -> Frame {
        var frame = Frame(
            CodeLocation(
                imagePath: "/b/p.xctest", buildID: nil, offset: offset, kind: .returnAddress))
        (frame.function, frame.isInlined) = (function, isInlined)
        return frame
    }

    func stall(
        _ reason: HangJudge.Reason = .noProgress(.seconds(60)),
        _ change: (inout HangReport.HungTest) -> Void
    ) -> StallReport {
        var report = HangReport(
            reason: reason, progress: TestProgress(at: MonotonicInstant(nanoseconds: 0)),
            now: Date(timeIntervalSince1970: 0))
        var hung = HangReport.HungTest(description: test)
        change(&hung)
        report.tests = [hung]
        return report.stall(
            of: hung, in: run, id: UniqueID(version7At: UnixTime(microseconds: 2)),
            start: UnixTime(microseconds: 2), limit: .seconds(60))
    }

    @Test func `a blocked test has its thread's stack, its cause and the holder of the lock`() {
        let holder = BlockedThread(
            id: ThreadID(rawValue: 9), name: "other", frames: [frame("hold()", 3)],
            wait: WaitFinding(object: "the end of a sleep", cause: .sleep))
        let report = stall { test in
            test.elapsed = .seconds(61)
            test.cases = ["1"]
            var wait = WaitFinding(object: "a mutex", cause: .lock)
            wait.isCircular = true
            var thread = BlockedThread(
                id: ThreadID(rawValue: 8), name: "pool",
                frames: [
                    frame("lock()", 1, isInlined: true), frame("load()", 1), frame("load()", 1),
                    frame("sums(of:)", 2),
                ], wait: wait)
            thread.holders = [holder]
            let third = BlockedThread(
                id: ThreadID(rawValue: 10), name: "third", frames: [frame("wait()", 4)],
                wait: WaitFinding(object: "a semaphore", cause: .lock))
            test.threads = [thread, holder, third]
        }
        #expect(report.loop == "M.S/sums(of:)" && report.activity == "1" && report.state == .open)
        #expect(report.duration == .seconds(61) && report.threshold == .seconds(60))
        #expect(report.detectionDelay == .seconds(1) && report.cpuTime == .zero)
        #expect(report.samples.count == 1 && report.samples[0].thread.rawValue == 8)
        #expect(report.samples[0].locations.map(\.offset) == [1, 1, 2])
        #expect(report.names.count == 4)
        #expect(report.names[report.samples[0].locations[0]]?.count == 2)
        #expect(report.threads.map(\.role) == [.holder, .other])
        #expect(report.cause?.cause == .lock && report.cause?.holder?.isDeadlock == true)
        #expect(report.cause?.evidence(.waitsFor) == "a mutex")
        #expect(report.cause?.evidence(.testLine) == "/p/A.swift:6")
    }

    @Test func `a running test has the CPU time of its thread, at most its own time`() {
        let report = stall { test in
            test.elapsed = .seconds(70)
            var thread = BlockedThread(
                id: ThreadID(rawValue: 8), name: "", frames: [frame("sums(of:)", 2)],
                wait: WaitFinding(isRunning: true, object: "", cause: .cpu))
            thread.cpuTime = .seconds(100)
            test.threads = [thread]
        }
        #expect(report.cpuTime == .seconds(70) && report.cause?.cause == .cpu)
        #expect(report.cause?.evidence(.waitsFor) == nil)
    }

    @Test func `a suspended test has its task's stack and no thread`() {
        let report = stall { test in
            test.elapsed = .seconds(61)
            test.tasks = [
                WaitingTask(
                    id: 4, isEnqueued: false, frames: [frame("sums(of:)", 2)],
                    awaits: "a continuation")
            ]
        }
        #expect(report.samples.map(\.thread.rawValue) == [0])
        #expect(report.cause?.cause == .unknown)
        #expect(report.cause?.evidence(.awaits) == "a continuation")
    }

    @Test func `a test that was not found has no stack, and no time that is not known`() {
        let unknown = stall { _ in }
        #expect(unknown.samples.isEmpty && unknown.duration == .seconds(60))
        let early = stall(.deadline(.seconds(10))) { $0.elapsed = .seconds(3) }
        #expect(early.duration == .seconds(3) && early.threshold == .seconds(3))
        #expect(stall(.deadline(.seconds(10))) { _ in }.duration == .zero)
        #expect(stall { $0.waitsForPool = true }.cause?.evidence(.awaits) != nil)
    }
}
