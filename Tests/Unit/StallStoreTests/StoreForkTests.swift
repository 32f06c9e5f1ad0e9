import CLinux
import CSQLite
import Foundation
import TestSupport
import Testing

@testable import StallStore

/// Goal: a child that was forked while other threads were in SQLite can use it, or knows that it cannot.
/// Method: processes of their own; a child that hangs is ended by SIGALRM, and the parent sees it.
@Suite struct StoreForkTests {
    @Test func `a child can use SQLite, whatever another thread does in it at the fork`() async {
        await #expect(processExitsWith: .success) {
            SQLiteLocks.holdInForks()
            for _ in 0..<2 {
                Thread.detachNewThread { while true { openMemory() } }
            }
            for _ in 0..<300 {
                guard wait(for: forkProcess { openMemory() ? 0 : 1 }) == 0 else { exit(1) }
            }
            exit(stall_fork_left_lock_taken() ? 2 : 0)
        }
    }

    @Test func `a fork does not wait for ever, and its child and grandchild know that`() async {
        await #expect(processExitsWith: .success) {
            SQLiteLocks.holdInForks()
            let lock = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_PRNG)
            sqlite3_mutex_enter(lock)
            let child = forkProcess {
                guard stall_fork_left_lock_taken() else { return 1 }
                return wait(for: forkProcess { stall_fork_left_lock_taken() ? 0 : 1 }) == 0 ? 0 : 2
            }
            guard wait(for: child) == 0, !stall_fork_left_lock_taken() else { exit(1) }
            sqlite3_mutex_leave(lock)
            // Neither process keeps what the fork has taken.
            let isFree: () -> Bool = { openMemory() && !stall_fork_left_lock_taken() }
            exit(wait(for: forkProcess { isFree() ? 0 : 1 }) == 0 && isFree() ? 0 : 2)
        }
    }
}

@discardableResult private func openMemory() -> Bool {
    guard let connection = try? Connection(to: "", as: "", .inMemory) else { return false }
    return (try? connection.execute("create table t(a); insert into t values(randomblob(9000))"))
        != nil
}
