// The locks that SQLite has in the process, whatever is open. In the child of a fork, those that another thread held stay
// taken, and the next call that needs one never returns.

internal import CLinux
internal import CSQLite

package enum SQLiteLocks {
    /// Whether each of them can be taken. Waits for other threads of this process to release them, a tenth of a second at
    /// most.
    ///
    /// **Source:** sqlite.org/c3ref/c_mutex_fast.html: the static mutexes, by number.
    package static var areFree: Bool {
        let deadline = stall_monotonic_ns() + 100_000_000
        return (SQLITE_MUTEX_STATIC_MAIN...SQLITE_MUTEX_STATIC_VFS1).allSatisfy { number in
            // Three are the app's. And nil where SQLite was built for one thread; static ones are not allocated.
            guard !(SQLITE_MUTEX_STATIC_APP1...SQLITE_MUTEX_STATIC_APP3).contains(number),
                let mutex = sqlite3_mutex_alloc(number)
            else { return true }
            while sqlite3_mutex_try(mutex) != SQLITE_OK {
                guard stall_monotonic_ns() < deadline else { return false }
                stall_word_nap()
            }
            sqlite3_mutex_leave(mutex)
            return true
        }
    }
}
