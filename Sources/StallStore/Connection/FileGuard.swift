// An app may close the descriptors of a store, and open its own files under their numbers, at any moment: also while
// SQLite writes.

internal import CLinux
internal import CSQLite

/// Makes SQLite look whose a file is, for stores that are opened in a process of others.
package enum FileGuard {
    /// Runs an operation of SQLite's on stores that are opened, used and closed in this way only.
    ///
    /// **Cost:** two system calls, 0.15 us, for each page that is written and each lock.
    package static func run<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        _ = isInstalled
        stall_file_guard_begin()
        defer { stall_file_guard_end() }
        return try body()
    }

    /// SQLite has one table of system calls for the process, which is the app's, too.
    private static let isInstalled: Void = {
        guard let files = sqlite3_vfs_find("unix"), files.pointee.iVersion >= 3,
            let get = files.pointee.xGetSystemCall, let set = files.pointee.xSetSystemCall
        else { return }
        var index: CInt = 0
        while let name = stall_file_guard_name(index) {
            if let original = get(files, name),
                let guarded = stall_file_guard_wrap(index, original)
            {
                _ = set(files, name, guarded)
            }
            index += 1
        }
        // SQLite has these functions for the life of the process.
        stall_pin_image()
    }()
}
