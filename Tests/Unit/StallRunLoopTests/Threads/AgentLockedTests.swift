import CLinux
import Dispatch
import Glibc
import TestSupport
import Testing

@testable import StallRunLoop

/// Goal: a forked child never inherits a lock of the agent's taken, and no fork waits long for that.
/// Method: processes of their own, which fork while other threads hold such locks; a child that hangs is ended by
/// SIGALRM, and the parent sees it.
@Suite struct AgentLockedTests {
    @Test func `a child finds no lock taken and no value half changed`() async {
        await #expect(processExitsWith: .success) {
            stall_fork_prepare()
            let values = Shared([Int]())
            let isOver = Shared(false)
            let threads = (0..<3).map { _ in
                onThread {
                    while !isOver.value.withLock({ $0 }) {
                        values.value.withLock { numbers in
                            numbers.append(1)
                            for _ in 0..<200 { numbers.append(numbers.last!) }
                            numbers.removeLast(numbers.count)
                        }
                    }
                }
            }
            for _ in 0..<200 {
                let child = forkProcess { values.value.withLock { $0.isEmpty ? 0 : 1 } }
                guard wait(for: child) == 0 else { exit(1) }
            }
            isOver.value.withLock { $0 = true }
            for thread in threads { thread.wait() }
            exit(0)
        }
    }

    @Test func `a fork does not wait for ever, and says so`() async {
        await #expect(processExitsWith: .success) {
            stall_fork_prepare()
            let value = Shared(0)
            let (isHeld, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let holder = onThread {
                value.value.withLock { _ in
                    // A lock inside of another one does not end the deferral.
                    Shared(0).value.withLock { _ in }
                    isHeld.signal()
                    mayEnd.wait()
                }
            }
            isHeld.wait()
            guard wait(for: forkProcess { 0 }) == 0, stall_fork_take_vain() == 1 else { exit(1) }
            mayEnd.signal()
            holder.wait()
            let child = forkProcess { value.value.withLock { CInt($0) } }
            guard wait(for: child) == 0, stall_fork_take_vain() == 0 else { exit(2) }
            // A fork while its own thread holds a lock, as in a signal handler, does not wait.
            let nested = value.value.withLock { _ in wait(for: forkProcess { 0 }) }
            exit(nested == 0 && stall_fork_take_vain() == 0 ? 0 : 3)
        }
    }

    @Test func `a fork waits for a thread at work, and not while that one waits`() async {
        await #expect(processExitsWith: .success) {
            stall_fork_prepare()
            let isHalfDone = Shared(false)
            let (isWaiting, mayGo) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let worker = onThread {
                guard !stall_fork_begin_wait() else { exit(1) }
                stall_fork_begin_work()
                // Under a lock, the work goes on.
                guard isHalfDone.value.withLock({ _ in !stall_fork_begin_wait() }) else { exit(2) }
                let waits = stall_fork_begin_wait()
                isWaiting.signal()
                mayGo.wait()
                stall_fork_end_wait(waits)
                for _ in 0..<20_000 {
                    isHalfDone.value.withLock { $0 = true }
                    isHalfDone.value.withLock { $0 = false }
                    stall_fork_let_pass()
                }
                stall_fork_end_work()
                guard !stall_fork_begin_wait() else { exit(3) }
            }
            isWaiting.wait()
            guard wait(for: forkProcess { 0 }) == 0, stall_fork_take_vain() == 0 else { exit(4) }
            mayGo.signal()
            for _ in 0..<50 {
                let child = forkProcess { isHalfDone.value.withLock { $0 ? 1 : 0 } }
                // One that has waited in vain, on a machine without time, protects nothing.
                guard wait(for: child) == 0 || stall_fork_take_vain() > 0 else { exit(5) }
            }
            worker.wait()
            exit(0)
        }
    }

    @Test func `a fork does not wait for long for a thread inside a library`() async {
        await #expect(processExitsWith: .success) {
            stall_fork_prepare()
            let (isInside, mayLeave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let worker = onThread {
                guard !stall_fork_enter_library() else { exit(1) }
                stall_fork_begin_work()
                let entered = stall_fork_enter_library()
                isInside.signal()
                mayLeave.wait()
                stall_fork_leave_library(entered)
                stall_fork_end_work()
            }
            isInside.wait()
            // The thread is still inside when it returns.
            guard wait(for: forkProcess { 0 }) == 0 else { exit(2) }
            mayLeave.signal()
            worker.wait()
            exit(wait(for: forkProcess { 0 }) == 0 ? 0 : 3)
        }
    }

    /// The handler is called after the agent's own, since it was registered before.
    @Test func `a handler before a fork does not wait for its own fork`() async {
        await #expect(processExitsWith: .success) {
            pthread_atfork(
                {
                    stall_fork_defer()
                    stall_fork_allow()
                }, nil, nil)
            stall_fork_prepare()
            let began = stall_monotonic_ns()
            guard wait(for: forkProcess { 0 }) == 0 else { exit(1) }
            // It waited for a second.
            exit(stall_monotonic_ns() - began < 900_000_000 ? 0 : 2)
        }
    }

    @Test func `forks of several threads leave no lock of a loop taken`() async {
        await #expect(processExitsWith: .success) {
            let loop = EventRunLoop.current
            let value = Shared(0)
            // Each fork waits for this lock in vain while it has those of the loops.
            value.value.withLock { _ in
                let threads = (0..<4).map { _ in
                    onThread {
                        for _ in 0..<2 where wait(for: forkProcess { 0 }) != 0 { exit(1) }
                    }
                }
                for thread in threads { thread.wait() }
            }
            exit(loop.post {} ? 0 : 2)
        }
    }
}

private final class Shared<Value: Sendable>: Sendable {
    let value: AgentLocked<Value>
    init(_ value: Value) { self.value = AgentLocked(value) }
}

private func onThread(_ body: @escaping @Sendable () -> Void) -> DispatchSemaphore {
    let hasEnded = DispatchSemaphore(value: 0)
    DispatchQueue(label: "thread").async {
        body()
        hasEnded.signal()
    }
    return hasEnded
}
