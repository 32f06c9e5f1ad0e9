import CSQLite
import Foundation
import TestSupport
import Testing

@testable import StallStore

/// Goal: a forked child knows whether it can use SQLite.
/// Method: a thread of the parent holds one of its locks at the fork, or does not any more.
@Suite struct SQLiteLocksTests {
    @Test(arguments: [true, false])
    func `a lock that another thread held at the fork stays taken`(isHeld: Bool) async {
        await #expect(processExitsWith: .success) { [isHeld] in
            let (isInside, mayLeave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let worker = Thread {
                let mutex = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_PRNG)
                sqlite3_mutex_enter(mutex)
                if !isHeld { sqlite3_mutex_leave(mutex) }
                isInside.signal()
                mayLeave.wait()
                if isHeld { sqlite3_mutex_leave(mutex) }
            }
            worker.start()
            isInside.wait()
            let child = forkProcess { SQLiteLocks.areFree == isHeld ? 1 : 0 }
            let status = wait(for: child)
            mayLeave.signal()
            exit(status == 0 && SQLiteLocks.areFree ? 0 : 2)
        }
    }
}
