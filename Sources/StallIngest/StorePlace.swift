// Whether an open store is still the file that its path names. SQLite still writes to a file that was removed, moved or
// replaced, and to one that another program emptied: no one finds again what it commits then.

internal import CSQLite
internal import StallModel
internal import StallStore

/// The files of an open store, as they were found by name.
struct StorePlace {
    private struct File: Equatable {
        var device: UInt64
        var inode: UInt64

        /// The number of a file cannot be given to another one as long as it is open.
        init?(_ path: String) {
            guard let facts = FileFacts(path) else { return nil }
            (device, inode) = (facts.device, facts.inode)
        }
    }

    /// The names behind the path: that of the store, and of what SQLite keeps beside it.
    private static let companions = ["-wal", "-shm"]
    private var file: File?
    private var beside: [String: File] = [:]

    /// Call it right after the store was opened.
    init(of store: StoreFile) {
        file = File(store.path)
        noteCompanions(of: store)
    }

    /// - Throws: `moved` where the path, or the log's, leads elsewhere by now; `damaged` where the first page is not that
    ///   of a store any more.
    mutating func expectUnchanged(_ store: StoreFile) throws(StoreError) {
        guard let file, File(store.path) == file, !store.wasMoved() else {
            throw .moved(path: store.path)
        }
        noteCompanions(of: store)
        let path = store.path.followingLink
        for (name, file) in beside where File(path + name) != file {
            throw .moved(path: store.path + name)
        }
        guard hasHead(store) else {
            throw .damaged(path: store.path, detail: "it was overwritten while it was open")
        }
    }

    private mutating func noteCompanions(of store: StoreFile) {
        let path = store.path.followingLink
        for name in Self.companions where beside[name] == nil { beside[name] = File(path + name) }
    }

    /// As on the disk: SQLite itself has the page in memory.
    private func hasHead(_ store: StoreFile) -> Bool {
        guard let handle = store.connection.handle else { return false }
        var bytes = [UInt8](repeating: 0, count: 100)
        guard stall_sqlite_file_read(handle, 0, &bytes, CInt(bytes.count), 0) != 0 else {
            return false
        }
        return StoreRole.applicationID(inHead: bytes) == store.role.rawValue
    }
}
