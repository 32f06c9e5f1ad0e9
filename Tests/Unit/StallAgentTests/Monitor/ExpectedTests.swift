import CLinux
import Foundation
import StallModel
import TestSupport
import Testing

@testable import StallAgent

/// Goal: `expected` notes exactly what its body runs on: a thread, or a task wherever it resumes.
/// Method: bodies read the notes. In a process of its own each: a monitor takes SIGURG and SIGPROF.
@Suite struct ExpectedTests {
    struct Refused: Error, Equatable {}

    /// The name of the scope that the calling thread, or a task, is in now.
    static func name(_ monitor: StallMonitor, task: UInt64? = nil) -> String? {
        let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        return monitor.expectedScopes.overlap(
            of: task == nil ? ThreadID(rawValue: stall_gettid()) : nil, task: task ?? 0, from: now,
            to: now + .milliseconds(1))?.name
    }

    static func withMonitor(_ body: (StallMonitor) async throws -> Void) async throws {
        let store = "/tmp/stall-expected-\(getpid())"
        let monitor = try StallMonitor.start(.init(app: "test", version: "1", store: store))
        defer {
            monitor.stop()
            for end in ["", "-wal", "-shm"] { unlink(store + end) }
        }
        try await body(monitor)
    }

    @Test func `a thread is in a scope while its body runs, and after a throw no more`() async {
        await #expect(processExitsWith: .success) {
            try await Self.withMonitor { monitor in
                let monitor = monitor
                Thread.runToEnd {
                    let result = monitor.expected("migration", atMost: .seconds(30)) {
                        #expect(Self.name(monitor) == "migration" && stall_expected_is_thread())
                        monitor.expected("inner", atMost: .zero) {
                            #expect(Self.name(monitor) == "migration")
                        }
                        #expect(Self.name(monitor) == "migration" && stall_expected_is_thread())
                        Thread.runToEnd {
                            #expect(Self.name(monitor) == nil && !stall_expected_is_thread())
                        }
                        return 7
                    }
                    #expect(result == 7)
                    #expect(Self.name(monitor) == nil && !stall_expected_is_thread())
                    #expect(throws: Refused()) {
                        try monitor.expected("migration") { () throws(Refused) in throw Refused() }
                    }
                    #expect(Self.name(monitor) == nil && !stall_expected_is_thread())
                    let long = String(repeating: "ä", count: 40)
                    monitor.expected(long) {
                        #expect(Self.name(monitor) == String(repeating: "ä", count: 31))
                    }
                }
            }
        }
    }

    @Test func `a task is in a scope on whatever thread it resumes, and others are not`() async {
        await #expect(processExitsWith: .success) {
            try await Self.withMonitor { monitor in
                let own = stall_task_current()
                try await monitor.expected("import") {
                    for _ in 0..<50 {
                        await Task.yield()
                        #expect(stall_task_current() == own && stall_expected_is_task(own))
                        #expect(Self.name(monitor, task: own) == "import")
                        #expect(Self.name(monitor) == nil && !stall_expected_is_thread())
                    }
                    await monitor.expected("inner", atMost: .zero) { await Task.yield() }
                    #expect(stall_expected_is_task(own))
                    await Task.detached {
                        let other = stall_task_current()
                        #expect(other != own && !stall_expected_is_task(other))
                        #expect(Self.name(monitor, task: other) == nil)
                    }.value
                    // Without an await it is the thread's, inside of the task's.
                    monitor.expected("inner") {
                        #expect(stall_expected_is_thread() && Self.name(monitor) == nil)
                    }
                    try await Task.sleep(for: .zero)
                }
                #expect(!stall_expected_is_task(own) && Self.name(monitor, task: own) == nil)
                await #expect(throws: Refused()) {
                    try await monitor.expected("import") {
                        await Task.yield()
                        throw Refused()
                    }
                }
                #expect(!stall_expected_is_task(own) && Self.name(monitor, task: own) == nil)
            }
        }
    }

    @Test func `a call after the limit is in no scope`() async {
        await #expect(processExitsWith: .success) {
            try await Self.withMonitor { monitor in
                monitor.expected("migration", atMost: .zero) {
                    #expect(!stall_expected_is_thread())
                    monitor.expected("inner") { #expect(!stall_expected_is_thread()) }
                }
                let own = stall_task_current()
                await monitor.expected("import", atMost: .zero) {
                    await Task.yield()
                    #expect(!stall_expected_is_task(own))
                }
            }
        }
    }

    @MainActor @Test func `the task of a thread is known once a scope began on it`() async {
        await #expect(processExitsWith: .success) {
            try await Self.withMonitor { monitor in
                try await Task { @MainActor in
                    let (own, thread) = (stall_task_current(), stall_gettid())
                    #expect(stall_jobs_task_on(thread) == 0)
                    await monitor.expected("import") { await Task.yield() }
                    #expect(stall_jobs_task_on(thread) == own && own != 0)
                    await Task.detached {
                        #expect(stall_jobs_task_on(thread) != stall_task_current())
                    }.value
                }.value
            }
        }
    }

    @Test func `the table of tasks holds 64, each once`() async {
        await #expect(processExitsWith: .success) {
            let tasks = (1...UInt64(STALL_EXPECTED_TASK_LIMIT)).map { $0 * 16 }
            for task in tasks { #expect(stall_expected_add_task(task, .max)) }
            #expect(!stall_expected_add_task(16, .max) && !stall_expected_add_task(16_000, .max))
            #expect(!stall_expected_add_task(0, .max) && !stall_expected_is_task(0))
            stall_expected_remove_task(32)
            #expect(!stall_expected_is_task(32) && stall_expected_is_task(16))
            #expect(stall_expected_add_task(16_000, .max) && stall_expected_is_task(16_000))
        }
    }
}

extension Thread {
    /// Runs `body` on a new thread and waits for its end.
    fileprivate static func runToEnd(_ body: @escaping @Sendable () -> Void) {
        let end = DispatchSemaphore(value: 0)
        detachNewThread {
            body()
            end.signal()
        }
        end.wait()
    }
}
