// A thread that does one job after the other. Neither the cooperative pool nor an event loop waits for a disk here.

internal import Foundation
internal import Synchronization

/// A thread with a queue. Stops when the last job is done after ``stop()``.
final class WorkThread: Sendable {
    // Protected by `condition`; jobs run on the thread only.
    private final class State: @unchecked Sendable {
        var jobs: [@Sendable () -> Void] = []
        var isStopping = false
        var isDone = false
    }

    private let state = State()
    private let condition = NSCondition()

    init(_ name: String) {
        let thread = Thread { [self] in run() }
        thread.name = name
        thread.stackSize = 4 << 20
        thread.start()
    }

    /// Runs a job on the thread; false once it is stopping.
    @discardableResult
    func add(_ job: @escaping @Sendable () -> Void) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        guard !state.isStopping else { return false }
        state.jobs.append(job)
        condition.signal()
        return true
    }

    /// Runs a job on the thread and waits for its answer; nil once the thread is stopping.
    func answer<Answer: Sendable>(_ job: @escaping @Sendable () -> Answer) async -> Answer? {
        await withCheckedContinuation { (done: CheckedContinuation<Answer?, Never>) in
            if !add({ done.resume(returning: job()) }) { done.resume(returning: nil) }
        }
    }

    /// Takes no more jobs, and waits until those that it has are done.
    func stop() { _ = stop(by: nil) }

    /// Takes no more jobs, and waits at most this long until those that it has are done.
    ///
    /// - Returns: Whether they are. Otherwise the thread is left with them.
    func stop(within seconds: Double) -> Bool {
        stop(by: Date(timeIntervalSinceNow: seconds))
    }

    private func stop(by end: Date?) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        state.isStopping = true
        condition.broadcast()
        while !state.isDone {
            guard let end else {
                condition.wait()
                continue
            }
            guard condition.wait(until: end) else { return state.isDone }
        }
        return true
    }

    private func run() {
        condition.lock()
        while true {
            while state.jobs.isEmpty, !state.isStopping { condition.wait() }
            guard !state.jobs.isEmpty else { break }
            let jobs = state.jobs
            state.jobs = []
            condition.unlock()
            for job in jobs { job() }
            condition.lock()
        }
        state.isDone = true
        condition.broadcast()
        condition.unlock()
    }
}
