internal import CLinux

/// Runs calls of SQLite's that may wait or take its locks: a fork waits for their end, 20 ms at most
/// (CLinux/stall_fork.h). Costs two loads on threads that are not an agent's.
@inline(__always) func inSQLite<Result>(_ body: () -> Result) -> Result {
    let isInside = stall_fork_enter_library()
    defer { stall_fork_leave_library(isInside) }
    return body()
}
