// Assigns the threads and tasks of a process to the tests that have not ended.

internal import StallInspection
internal import StallModel

struct HangSearch {
    private let seen: InspectedTests
    private let waits: WaitDescription
    private let tasks: [UInt64: InspectedTests.Task]
    private let threadsByTask: [UInt64: InspectedTests.Thread]

    init(_ seen: InspectedTests) {
        self.seen = seen
        waits = WaitDescription(
            process: seen.inspected,
            threads: Dictionary(seen.threads.map { ($0.facts.id, $0) }) { first, _ in first })
        tasks = Dictionary(seen.tasks.map { ($0.facts.address, $0) }) { first, _ in first }
        threadsByTask = Dictionary(
            seen.threads.compactMap { thread in thread.task.map { ($0, thread) } }
        ) { first, _ in first }
    }

    /// The threads and tasks in a test's function, or in what it awaits.
    func findings(
        of test: TestDescription
    ) -> (threads: [BlockedThread], tasks: [WaitingTask]) {
        let roots = seen.tasks.filter { task in
            task.facts.state != .running && task.frames.contains { $0.isOf(test) }
        }
        var reached: Set<UInt64> = []
        var found: [WaitingTask] = []
        for root in roots where !reached.contains(root.facts.address) {
            found.append(waiting(root, upTo: test, &reached, depth: 0))
        }
        let threads = seen.threads.filter { thread in
            thread.frames.contains { $0.isOf(test) }
                || thread.task.map(reached.contains) ?? false
        }
        return (threads.map { blocked($0, upTo: test) }, found)
    }

    /// Threads that run a task.
    var busyPoolThreads: [InspectedTests.Thread] {
        seen.threads.filter { thread in thread.frames.contains(where: \.runsJob) }
    }

    var enqueuedCount: Int { seen.tasks.count { $0.facts.state == .enqueued } }

    /// The test's function, or nil if the thread is in none.
    func blocked(_ thread: InspectedTests.Thread, upTo test: TestDescription?) -> BlockedThread {
        let wait = waits.wait(of: thread)
        var found = BlockedThread(
            id: thread.facts.id, name: thread.facts.name,
            frames: Self.relevant(thread.frames, upTo: test), wait: wait)
        found.holders = wait.holderIDs.compactMap { holder in
            waits.threads[holder].map {
                BlockedThread(
                    id: holder, name: $0.facts.name,
                    frames: Self.relevant($0.frames, upTo: nil), wait: waits.wait(of: $0))
            }
        }
        if wait.isRunning { found.cpuTime = seen.inspected.cpuTime(of: thread.facts.id) }
        return found
    }

    private func waiting(
        _ task: InspectedTests.Task, upTo test: TestDescription?, _ reached: inout Set<UInt64>,
        depth: Int
    ) -> WaitingTask {
        reached.insert(task.facts.address)
        var awaited: [UInt64] = []
        switch task.facts.awaited {
        case .task(let address): awaited = [address]
        case .group:
            awaited = seen.tasks.filter { $0.facts.parent == task.facts.address }.map(
                \.facts.address)
        case .continuation, .executor, nil: break
        }
        var below: [WaitingTask] = []
        for address in awaited.prefix(8) where depth < 8 && !reached.contains(address) {
            guard let next = tasks[address] else { continue }
            below.append(waiting(next, upTo: nil, &reached, depth: depth + 1))
        }
        return WaitingTask(
            id: task.facts.id, isEnqueued: task.facts.state == .enqueued,
            frames: Self.relevant(task.frames, upTo: test), awaits: Self.awaits(task, below),
            awaited: below, thread: threadsByTask[task.facts.address]?.facts.id)
    }

    private static func awaits(_ task: InspectedTests.Task, _ awaited: [WaitingTask]) -> String {
        let function = task.frames.first { $0.function != nil && !$0.isGenerated && !$0.isAdapter }
        let position = function.flatMap { $0.isOwn ? nil : $0.function.map { ", in " + $0 } } ?? ""
        let named = awaited.map { "task \($0.id)" }.joined(separator: ", ")
        return switch task.facts.awaited {
        case .task: named.isEmpty ? "a task" : named
        case .group: named.isEmpty ? "its child tasks" : "its child tasks: " + named
        case .continuation: "a continuation" + position
        case .executor(0): "a free thread of the pool"
        case .executor: "its turn on an actor" + position
        case nil: "an unknown event" + position
        }
    }

    /// From the innermost frame out to the test's function; without a test, the package's own frames and what they call.
    static func relevant(_ frames: [Frame], upTo test: TestDescription?) -> [Frame] {
        // Behind the function that runs a job are the pool's own frames, until the awaiting functions.
        var kept: [Frame] = []
        var isInPool = false
        for frame in frames {
            if frame.runsJob { isInPool = true }
            if frame.kind == .asyncResume { isInPool = false }
            if !isInPool, !frame.isGenerated { kept.append(frame) }
        }
        let last =
            test.flatMap { test in kept.lastIndex { $0.isOf(test) } }
            ?? kept.lastIndex(where: \.isOwn)
        return last.map { Array(kept[...$0]) } ?? Array(kept.prefix(12))
    }
}

extension Frame {
    var placeText: String? { file.map { file in line.map { "\(file):\($0)" } ?? file } }

    /// A function of the runtime that only leads to the next one.
    var isAdapter: Bool {
        function?.contains("_adapter(") == true
            || function?.contains("_continuation(swift::") == true
    }
}

extension HangSearch {
    /// XCTest calls a test's function on the thread that drains the main queue: the outermost of the tests' image within
    /// XCTest's. An async one is a task of its own.
    var testsOfXCTest: [HangReport.HungTest] {
        let frames = seen.threads.map(\.frames) + seen.tasks.map(\.frames)
        var tests: [HangReport.HungTest] = []
        for frame in frames.compactMap(Self.testFrame) {
            guard let test = TestDescription(xctest: frame),
                !tests.contains(where: { $0.description.id == test.id })
            else { continue }
            tests.append(HangReport.HungTest(description: test))
        }
        return tests
    }

    /// The outermost method of the tests' image whose name is a test's.
    private static func testFrame(_ frames: [Frame]) -> Frame? {
        frames.last { frame in
            // `Class.testSums()`
            frame.isOwn && frame.function?.contains(/^[\w.`]+\.test[^ (.]*\(/) == true
        }
    }
}

extension TestDescription {
    /// XCTest's name of a test from its function: `Module.Class/test`.
    init?(xctest frame: Frame) {
        guard let function = frame.function else { return nil }
        let name = Substring(function)
        guard let dot = name.prefix(while: { $0 != "(" }).lastIndex(of: ".") else { return nil }
        let module = frame.rawName.flatMap(Self.module) ?? "Tests"
        let method = name[name.index(after: dot)...].prefix { $0 != "(" }
        self.init(
            id: "\(module).\(name[..<dot])/\(method)()", name: "\(name[..<dot]).\(method)",
            path: frame.file, line: frame.line)
    }

    /// `$s9HangTests3OldC8testHangyyF`: the module is first, behind the length of its name.
    private static func module(_ mangled: String) -> String? {
        guard mangled.hasPrefix("$s") else { return nil }
        let digits = mangled.dropFirst(2).prefix { $0.isASCII && $0.isNumber }
        guard let count = Int(digits), count < 1000 else { return nil }
        let name = mangled.dropFirst(2 + digits.count).prefix(count)
        return name.count == count ? String(name) : nil
    }
}
