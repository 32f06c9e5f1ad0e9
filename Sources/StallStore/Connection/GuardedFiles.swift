// The files that SQLite opens beside a store, at whatever time: at first, in a transaction, when the store is closed.

internal import CSQLite
internal import Glibc
internal import Synchronization

/// A VFS that opens no file beside a store whose owner could not have made it, and never another journal that a journal names:
/// SQLite would delete the file of that name.
///
/// All else is the default VFS's, which the app, or a test, may have replaced.
enum GuardedFiles {
    /// The name of the VFS, for `sqlite3_open_v2`; nil if there is no memory. SQLite has it for the life of the process.
    static func name() -> UnsafePointer<CChar>? {
        guard let base = sqlite3_vfs_find(nil) else { return nil }
        if let files = UnsafePointer<sqlite3_vfs>(bitPattern: newest.load(ordering: .acquiring)),
            files.pointee.pAppData == UnsafeMutableRawPointer(base)
        {
            return files.pointee.zName
        }
        let files = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
        files.initialize(to: base.pointee)
        files.pointee.zName = UnsafePointer(strdup("stallwatch-\(UInt(bitPattern: files))"))
        files.pointee.pNext = nil
        files.pointee.pAppData = UnsafeMutableRawPointer(base)
        files.pointee.xOpen = open
        guard files.pointee.zName != nil, sqlite3_vfs_register(files, 0) == SQLITE_OK else {
            return nil
        }
        newest.store(UInt(bitPattern: files), ordering: .releasing)
        return files.pointee.zName
    }

    /// The one that was made last. Without a lock, which a forked child might find held: two threads may make one each.
    private static let newest = Atomic<UInt>(0)

    private typealias Open =
        @convention(c) (
            UnsafeMutablePointer<sqlite3_vfs>?, UnsafePointer<CChar>?,
            UnsafeMutablePointer<sqlite3_file>?, CInt, UnsafeMutablePointer<CInt>?
        ) -> CInt

    private static let open: Open = { files, path, file, flags, output in
        guard let base = files?.pointee.pAppData?.assumingMemoryBound(to: sqlite3_vfs.self),
            let openFile = base.pointee.xOpen
        else { return SQLITE_CANTOPEN }
        if isRefused(path, flags) {
            file?.pointee.pMethods = nil
            return SQLITE_CANTOPEN
        }
        return openFile(base, path, file, flags, output)
    }

    private static func isRefused(_ path: UnsafePointer<CChar>?, _ flags: CInt) -> Bool {
        if flags & SQLITE_OPEN_SUPER_JOURNAL != 0 { return true }
        guard let path, flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL) != 0 else {
            return false
        }
        let suffix = flags & SQLITE_OPEN_WAL != 0 ? "-wal" : "-journal"
        let store = String(cString: path).dropLast(suffix.count)
        return SourceGuard.badCompanion(of: String(store)) != nil
    }
}
