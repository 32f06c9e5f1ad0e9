import Dispatch
import Foundation
import StallTesting
import Testing

@Suite(.noBlocking) struct NoBlockingTests {
    @Test func sleeps() {
        Thread.sleep(forTimeInterval: 0.001)  // blocks: sleeps
    }

    @Test func readsAFile() throws {
        _ = try Data(contentsOf: URL(filePath: #filePath))  // blocks: readsAFile
    }

    @Test func waitsInAChildTask() async {
        async let child: Void = waitForNothing()
        await child
    }

    @Test func waitsInAGroup() async {
        await withTaskGroup { group in
            for _ in 0..<3 { group.addTask { usleep(100) } }  // blocks: waitsInAGroup
        }
    }

    @Test(arguments: [1, 2]) func sleepsForEachArgument(_ number: Int) {
        usleep(UInt32(number))  // blocks: sleepsForEachArgument
    }

    @MainActor @Test func waitsOnTheMainActor() {
        DispatchQueue.global().sync {}  // blocks: waitsOnTheMainActor
    }

    @Test func makesManyCalls() {  // blocks: makesManyCalls
        for _ in 0..<100 {
            usleep(1)  // blocks: makesManyCalls
            usleep(2)  // blocks: makesManyCalls
        }
    }

    @Test func leavesATaskThatBlocks() {
        Task {
            for _ in 0..<100 {
                try? await Task.sleep(for: .milliseconds(100))
                usleep(1)
                usleep(2)
            }
        }
    }

    @Test func sleepsBesideOthers() async {
        try? await Task.sleep(for: .milliseconds(300))
        usleep(1)  // blocks: sleepsBesideOthers
    }

    @Test func recordsAnIssue() {
        withKnownIssue { Issue.record("that is no call of the test") }
    }

    @Test func computes() async {
        let lock = NSLock()
        var sum = 0
        for number in 0..<10_000 { lock.withLock { sum += number } }
        try? await Task.sleep(for: .milliseconds(5))
        #expect(sum == 49_995_000)
    }
}

@Suite struct OtherTests {
    @Test func mayBlock() { usleep(1000) }

    @Test(.noBlocking(allowing: ["loadSettings*"])) func loadsItsSettings() { loadSettings() }
}

func waitForNothing() async {
    let semaphore = DispatchSemaphore(value: 0)
    _ = semaphore.wait(timeout: .now() + .milliseconds(1))  // blocks: waitsInAChildTask
}

@inline(never) func loadSettings() { usleep(100) }
