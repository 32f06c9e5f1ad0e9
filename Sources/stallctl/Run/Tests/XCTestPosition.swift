// The progress of XCTest, which writes no stream: the test whose function is on a thread, or in a task.

internal import StallInspection
internal import StallModel
internal import StallSymbols

struct XCTestPosition {
    /// The tests in progress now; nil if none can be seen, so that nothing is known of their progress.
    static func current(of processes: [RunningProcess]) -> Set<String>? {
        var names: Set<String> = []
        for process in processes where !process.usesSwiftTesting {
            // XCTest runs one test at a time. The search for tasks reads all of the process's memory, so it is for a
            // test that no thread has: an async one that is suspended.
            var tests = Self.tests(of: process, findsTasks: false)
            if tests.isEmpty { tests = Self.tests(of: process, findsTasks: true) }
            names.formUnion(tests)
        }
        return names.isEmpty ? nil : names
    }

    private static func tests(of process: RunningProcess, findsTasks: Bool) -> [String] {
        let seen = InspectedTests(process, findsLines: false, findsTasks: findsTasks)
        return HangSearch(seen).testsOfXCTest.map { "\(process.id) \($0.description.id)" }
    }
}
