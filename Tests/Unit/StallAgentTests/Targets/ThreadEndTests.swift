import CLinux
import Foundation
import StallModel
import StallRunLoop
import Synchronization
import TestSupport
import Testing

@testable import StallAgent

/// Goal: thread-end handlers run as registered, and do not accumulate on a thread that outlives many monitors.
/// Method: threads of the test's own, whose end it waits for.
@Suite struct ThreadEndTests {
    @Test func `blocks of owners that are gone are let go`() {
        let count = Number()
        onThread {
            for _ in 0..<50 { ThreadEnd.run(for: Owner()) {} }
            let last = Owner()
            for _ in 0..<3 { ThreadEnd.run(for: last) {} }
            count.value.store(ThreadEnd.count, ordering: .relaxed)
        }
        #expect(count.value.load(ordering: .relaxed) == 1)
    }

    /// In its own process: a monitor takes SIGURG and SIGPROF, which other suites of this one use.
    @Test func `a loop is watched no longer than its thread lives, whatever else the thread marks`()
        async
    {
        await #expect(processExitsWith: .success) {
            try withTemporaryDirectory { directory in
                let monitor = try StallMonitor.start(
                    .init(app: "test", version: "1", store: directory.appending(path: "s").path))
                defer { monitor.stop() }
                let thread = Number()
                onThread {
                    let marks = (0..<8).map { monitor.watchCurrentThread(as: "marks \($0)") }
                    monitor.watch(EventRunLoop.current, as: "loop")
                    thread.value.store(Int(stall_gettid()), ordering: .relaxed)
                    withExtendedLifetime(marks) {}
                }
                let id = ThreadID(rawValue: Int32(thread.value.load(ordering: .relaxed)))
                #expect(monitor.watches[.eventRunLoop(id)] == nil)
            }
        }
    }
}

private final class Owner {}

private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(run: @escaping @Sendable () -> Void) { self.run = run }
}

private final class Number: Sendable { let value = Atomic<Int>(-1) }

/// Runs `body` on a thread and waits for its end, including its handlers.
private func onThread(_ body: @escaping @Sendable () -> Void) {
    var thread = pthread_t()
    let context = Unmanaged.passRetained(Body(run: body))
    pthread_create(
        &thread, nil,
        {
            Unmanaged<Body>.fromOpaque($0!).takeRetainedValue().run()
            return nil
        }, context.toOpaque())
    pthread_join(thread, nil)
}
