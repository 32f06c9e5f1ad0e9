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
