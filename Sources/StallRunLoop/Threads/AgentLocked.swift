// The lock of the agent's values. A forked child has the values but not the threads, so a fork waits until no thread
// holds any of these locks (CLinux/stall_fork.h): the child can start an agent whatever the parent's threads were
// doing.

internal import CLinux

/// As ``Locked``, and never taken in a forked child.
///
/// Like that one it has no priority inheritance: a real-time thread may wait for a plain one that holds it.
package struct AgentLocked<Value>: ~Copyable, @unchecked Sendable {
    // Unchecked as `Locked` is.
    private let locked: Locked<Value>

    package init(_ value: Value) { locked = Locked(value) }

    package borrowing func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        stall_fork_defer()
        defer { stall_fork_allow() }
        return try locked.withLock(body)
    }

    /// Nil when another thread has it at this moment.
    package borrowing func withLockIfAvailable<Result>(_ body: (inout Value) -> Result) -> Result? {
        stall_fork_defer()
        defer { stall_fork_allow() }
        return locked.withLockIfAvailable(body)
    }
}
