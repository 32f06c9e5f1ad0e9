// Each kind of thread that a monitor watches, as a way to run a piece of work there and wait for its end elsewhere.

import Dispatch
import Foundation
import StallAgent
import StallDoor
import StallRunLoop

/// A watched thread, or the threads of a pool.
struct WatchedThreads: Sendable {
    let name: String
    /// Enqueues the work.
    let run: @Sendable (_ work: @escaping @Sendable () -> Void) -> Void

    /// Runs the work, and returns when it has ended.
    func runAndWait(_ work: @escaping @Sendable () -> Void) {
        let hasEnded = DispatchSemaphore(value: 0)
        run {
            work()
            hasEnded.signal()
        }
        hasEnded.wait()
    }

    static func all(of monitor: StallMonitor) -> [WatchedThreads] {
        [
            eventRunLoop(monitor), foundation(monitor), tasks(monitor), executor(monitor),
            marked(monitor), waits(monitor), queue(monitor), mainActor(monitor),
        ]
    }

    private static func eventRunLoop(_ monitor: StallMonitor) -> WatchedThreads {
        let loop = onNewThread { made in
            let loop = EventRunLoop.current
            monitor.watch(loop, as: "loop")
            loop.post { made(loop) }
            let keepsRunning = LoopTimer(after: .seconds(3600), every: .seconds(3600)) { _ in }
            loop.add(keepsRunning, toMode: .common)
            loop.run()
        }
        return WatchedThreads(name: "loop") { work in loop.post { work() } }
    }

    private static func foundation(_ monitor: StallMonitor) -> WatchedThreads {
        let loop = onNewThread { (made: @escaping (SendableLoop) -> Void) in
            let loop = SendableLoop(loop: RunLoop.current)
            monitor.watch(loop.loop, as: "foundation")
            let keepsRunning = Timer(timeInterval: 3600, repeats: true) { _ in }
            loop.loop.add(keepsRunning, forMode: .common)
            loop.loop.perform { made(loop) }
            while loop.loop.run(mode: .default, before: .distantFuture) {}
        }
        return WatchedThreads(name: "foundation") { work in
            // A timer, because adding one wakes the loop.
            let timer = Timer(fire: Date(), interval: 0, repeats: false) { _ in work() }
            loop.loop.add(timer, forMode: .common)
        }
    }

    private static func tasks(_ monitor: StallMonitor) -> WatchedThreads {
        monitor.watchTasks()
        return WatchedThreads(name: "tasks") { work in Task.detached { work() } }
    }

    private static func executor(_ monitor: StallMonitor) -> WatchedThreads {
        let executor = monitor.taskExecutor
        return WatchedThreads(name: "executor") { work in
            Task.detached(executorPreference: executor) { work() }
        }
    }

    private static func marked(_ monitor: StallMonitor) -> WatchedThreads {
        let items = WorkList()
        Thread {
            let thread = monitor.watchCurrentThread(as: "marked")
            while true {
                let work = items.next()
                thread.begin()
                work()
                thread.end()
            }
        }.start()
        return WatchedThreads(name: "marked") { work in items.add(work) }
    }

    /// A loop of poll on a pipe, as other libraries have it.
    private static func waits(_ monitor: StallMonitor) -> WatchedThreads {
        var ends: [Int32] = [0, 0]
        precondition(pipe(&ends) == 0)
        for end in ends { precondition(fcntl(end, F_SETFL, O_NONBLOCK) == 0) }
        let (reading, writing) = (ends[0], ends[1])
        let items = WorkList()
        Thread {
            monitor.watchWaits(ofCurrentThreadAs: "waits")
            var byte: UInt8 = 0
            while true {
                var file = pollfd(fd: reading, events: Int16(POLLIN), revents: 0)
                guard poll(&file, 1, -1) == 1 else { continue }
                if read(reading, &byte, 1) == 1 { items.next()() }
            }
        }.start()
        return WatchedThreads(name: "waits") { work in
            items.add(work)
            var byte: UInt8 = 1
            precondition(write(writing, &byte, 1) == 1)
        }
    }

    private static func queue(_ monitor: StallMonitor) -> WatchedThreads {
        let queue = DispatchQueue(label: "watched")
        monitor.watch(queue, as: "queue")
        return WatchedThreads(name: "queue") { work in queue.async(execute: work) }
    }

    /// Under `dispatchMain()`: on a thread of Dispatch's.
    private static func mainActor(_ monitor: StallMonitor) -> WatchedThreads {
        monitor.watchMainActor()
        return WatchedThreads(name: "MainActor") { work in Task { @MainActor in work() } }
    }

    private static func onNewThread<Value: Sendable>(
        _ body: @escaping @Sendable (_ made: @escaping @Sendable (Value) -> Void) -> Void
    ) -> Value {
        let box = WorkBox<Value>()
        Thread { body { box.set($0) } }.start()
        return box.get()
    }
}

/// Foundation's loop, used from other threads only to add timers.
private struct SendableLoop: @unchecked Sendable {
    let loop: RunLoop
}

private final class WorkBox<Value: Sendable>: @unchecked Sendable {
    // Unchecked because the semaphore orders the accesses.
    private var value: Value?
    private let isSet = DispatchSemaphore(value: 0)

    func set(_ value: Value) {
        self.value = value
        isSet.signal()
    }

    func get() -> Value {
        isSet.wait()
        return value!
    }
}

private final class WorkList: @unchecked Sendable {
    // Unchecked because the lock guards the items.
    private let lock = NSLock()
    private let count = DispatchSemaphore(value: 0)
    private var items: [@Sendable () -> Void] = []

    func add(_ work: @escaping @Sendable () -> Void) {
        lock.withLock { items.append(work) }
        count.signal()
    }

    func next() -> @Sendable () -> Void {
        count.wait()
        return lock.withLock { items.removeFirst() }
    }
}
