// Checks files before they are opened as a store: only regular files of its owner take part in reading one, and a journal
// that was left behind is rolled back in a private copy. SQLite itself opens whatever has the right name.

internal import CLinux
internal import Glibc
internal import StallModel

/// Checks a store's file and those that SQLite puts beside it.
package enum SourceGuard {
    /// The suffixes of files that SQLite opens beside a store.
    package static let companions = ["-wal", "-shm", "-journal"]

    /// Refuses a store with files beside it that SQLite has not made for it: opening a pipe waits, the target of a link may
    /// belong to any process, and a journal or log of another user would replace what the store says.
    package static func expectPlainCompanions(_ path: String) throws(StoreError) {
        if let detail = badCompanion(of: path) { throw .badCompanion(path: path, detail: detail) }
    }

    /// The fault of a file beside the store, for a message; nil if there is none.
    static func badCompanion(of path: String) -> String? {
        let store = FileFacts(path)
        for suffix in companions {
            guard let facts = FileFacts(path + suffix, followsLink: false) else { continue }
            guard facts.isRegular else {
                return "its \(suffix) file is \(facts.noun); expected a regular file"
            }
            // Root's SQLite gives what it makes to the store's owner. Of a store that others may write they make it.
            guard let store, facts.owner != store.owner else { continue }
            if !store.isSharedForWriting || facts.linkCount > 1 {
                return "its \(suffix) file belongs to user \(facts.owner), "
                    + "and the store to user \(store.owner)"
            }
        }
        return nil
    }

    /// Refuses a journal that names another one: SQLite would look for that anywhere, and delete it.
    ///
    /// - Parameter original: For the message: the store that this is a copy of.
    package static func expectOwnJournal(
        _ path: String, of original: String? = nil
    ) throws(StoreError) {
        let descriptor = stall_descriptor_open_to_read(path + "-journal", O_NOFOLLOW)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        let size = lseek(descriptor, 0, SEEK_END)
        var end = [UInt8](repeating: 0, count: 8)
        guard size >= 8, pread(descriptor, &end, 8, size - 8) == 8,
            end == [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        else { return }
        throw .badCompanion(
            path: original ?? path,
            detail: "its -journal file names another journal, which no stallwatch store does")
    }
}

extension FileFacts {
    /// A noun for the kind of file, for a message.
    package var noun: String {
        if isSymbolicLink { return "a symbolic link" }
        if isDirectory { return "a directory" }
        return isRegular ? "a regular file" : "a pipe, socket or device"
    }
}
