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

    @Test func repeatsCallsInTurns() {
        for _ in 0..<100 {
            usleep(1)  // blocks: repeatsCallsInTurns
            usleep(2)  // blocks: repeatsCallsInTurns
        }
    }

    @Test func makesManyCalls() {  // blocks: makesManyCalls
        for depth in 0..<50 { sleep(inCalls: depth) }
    }

    /// The library waits for the process, and reads of it, more often than calls are held.
    @Test func waitsForExits() async {
        for _ in 0..<3 { await #expect(processExitsWith: .failure) { exit(1) } }
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

    @Test func readsInMacros() throws {
        #expect(FileManager.default.contents(atPath: #filePath) != nil)  // blocks: readsInMacros
        let file = URL(filePath: #filePath)
        let data = try #require(try? Data(contentsOf: file))  // blocks: readsInMacros
        #expect(!data.isEmpty)
    }

    /// The runtime has locks around the types that it makes. None is the program's.
    @Test func makesTypes() async {
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask { makeTypes(around: Int.self, count: 3000) }
                group.addTask { makeTypes(around: String.self, count: 3000) }
            }
        }
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

/// The inner trait decides.
@Suite(.noBlocking) struct InnerTraitTests {
    @Test(.noBlocking(allowing: ["meant*"]), arguments: 0..<100)
    func allowsMore(number: Int) { meant() }
}

@inline(never) func meant() {
    usleep(1)
    usleep(2)
}

func sleep(inCalls depth: Int) {
    guard depth == 0 else { return sleep(inCalls: depth - 1) }
    usleep(1)  // blocks: makesManyCalls
    usleep(2)  // blocks: makesManyCalls
}

@inline(never) func loadSettings() { usleep(100) }

struct Wrapper<Wrapped> {}

func makeTypes<T>(around type: T.Type, count: Int) {
    if count > 0 { makeTypes(around: Wrapper<T>.self, count: count - 1) }
}
