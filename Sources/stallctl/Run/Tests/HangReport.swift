// The facts about a run of tests that makes no progress.

internal import Foundation
internal import StallInspection
internal import StallModel

struct HangReport {
    var reason: HangJudge.Reason
    var tests: [HungTest]
    var processes: [ExaminedProcess] = []
    /// How many tests have started and ended.
    var startedCount: Int
    var endedCount: Int

    struct HungTest {
        var description: TestDescription
        /// How long it has run.
        var elapsed: Duration?
        var cases: [String] = []
        /// The threads in its function, or in what it awaits.
        var threads: [BlockedThread] = []
        var tasks: [WaitingTask] = []
        /// Where it hangs was looked for.
        var isExamined = false
        /// The process in which it was found.
        var process: Int32?
        /// Nothing is in its function, and no thread of the concurrency pool is free.
        var waitsForPool = false
    }

    /// A process with tests.
    struct ExaminedProcess {
        var id: Int32
        var command: String
        var threadCount = 0
        /// The threads that run a task.
        var busy: [BlockedThread] = []
        /// How many threads the concurrency pool can have.
        var poolSize = 1
        /// Tasks that could run, if a thread were free.
        var enqueuedCount = 0
        /// Why its threads' stacks could not be read.
        var failure: String?
        /// Its tests are followed by an event stream.
        var isStreamed = true
        var startTicks: UInt64 = 0
        var images: [Image] = []

        /// Of the program, which is the tests' bundle.
        var buildID: BuildID? { images.first { $0.path.hasSuffix(".xctest") }?.buildID }
    }

    init(
        reason: HangJudge.Reason, progress: TestProgress,
        examining processes: [RunningProcess] = [],
        now: Date
    ) {
        self.reason = reason
        startedCount = progress.startedCount
        endedCount = progress.endedCount
        tests = progress.unfinished.map { unfinished in
            HungTest(
                description: unfinished.test,
                elapsed: unfinished.started.map {
                    .milliseconds(Int64(max(0, min(1e12, now.timeIntervalSince($0) * 1000))))
                },
                cases: unfinished.cases)
        }
        for process in processes { examine(process) }
    }

    private mutating func examine(_ process: RunningProcess) {
        let seen = InspectedTests(process)
        let search = HangSearch(seen)
        var examined = ExaminedProcess(
            id: process.id, command: process.arguments.first ?? "",
            threadCount: seen.threads.count, poolSize: seen.inspected.processorCount,
            enqueuedCount: search.enqueuedCount)
        examined.isStreamed = process.usesSwiftTesting
        examined.startTicks = process.startTicks
        examined.images = seen.inspected.images
        let failures = seen.threads.compactMap(\.facts.failure)
        if !failures.isEmpty, failures.count == seen.threads.count {
            examined.failure = failures[0].description
        }
        // XCTest has no stream: its test is the one whose function a thread is in.
        if !process.usesSwiftTesting { tests += search.testsOfXCTest }
        for index in tests.indices {
            let found = search.findings(of: tests[index].description)
            tests[index].threads += found.threads
            tests[index].tasks += found.tasks
            tests[index].isExamined = examined.failure == nil
            if !found.threads.isEmpty || !found.tasks.isEmpty { tests[index].process = process.id }
        }
        examined.busy = search.busyPoolThreads.map { thread in
            let test = tests.first { $0.threads.contains { $0.id == thread.facts.id } }
            return search.blocked(thread, upTo: test?.description)
        }
        if examined.enqueuedCount > 0, examined.busy.count >= examined.poolSize {
            for index in tests.indices where tests[index].threads.isEmpty {
                tests[index].waitsForPool = tests[index].tasks.isEmpty
            }
        }
        processes.append(examined)
    }

    /// The test whose function a thread is in.
    func test(of thread: ThreadID) -> HungTest? {
        tests.first { $0.threads.contains { $0.id == thread } }
    }

    /// `no test has started or ended for 60 s; 2 of 17 that started have not ended`
    var sentence: String {
        let open = "\(tests.count) of \(max(startedCount, tests.count)) that started have not ended"
        return switch reason {
        case .noProgress(let time): "no test has started or ended for \(time.compact); \(open)"
        case .deadline(let time): "the run of the tests has taken \(time.compact); \(open)"
        }
    }
}
