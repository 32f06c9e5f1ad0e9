// SQLite has a few locks for the whole process, which it takes for every allocation and every file. A child that is
// forked while another thread is in SQLite, the agent's or the app's, could otherwise never use it.

internal import CLinux
internal import CSQLite

enum SQLiteLocks {
    /// From now on every fork waits until no thread holds one of them, 100 ms at most.
    static func holdInForks() {
        // No thread may fork while this one is the first in SQLite, or makes the value below.
        stall_fork_prepare()
        stall_fork_defer()
        defer { stall_fork_allow() }
        _ = held
    }

    private static let held: Void = {
        guard sqlite3_initialize() == SQLITE_OK else { return }
        // Those of files before those of memory, which are taken while a file is opened. Those for extensions and the
        // app are left out. Each is nil in an app that has made SQLite single-threaded.
        let kinds = [
            SQLITE_MUTEX_STATIC_MAIN, SQLITE_MUTEX_STATIC_OPEN, SQLITE_MUTEX_STATIC_VFS1,
            SQLITE_MUTEX_STATIC_PRNG, SQLITE_MUTEX_STATIC_LRU, SQLITE_MUTEX_STATIC_PMEM,
            SQLITE_MUTEX_STATIC_MEM,
        ]
        let locks = kinds.map { UnsafeMutableRawPointer(sqlite3_mutex_alloc($0)) }
        stall_fork_hold(
            locks, locks.count, { sqlite3_mutex_try(OpaquePointer($0)) },
            { sqlite3_mutex_leave(OpaquePointer($0)) })
    }()
}
