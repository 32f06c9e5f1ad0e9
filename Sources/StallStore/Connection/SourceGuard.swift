// Checks files before they are opened as a store: only regular files take part in reading one, and a journal that was
// left behind is rolled back in a private copy. SQLite itself opens whatever has the right name.

internal import Glibc
internal import StallModel

/// Checks a store's file and those that SQLite puts beside it.
package enum SourceGuard {
    /// The suffixes of files that SQLite opens beside a store.
    package static let companions = ["-wal", "-shm", "-journal"]

    /// Refuses a store that has something else than regular files beside it: opening a pipe waits, and the target of a
    /// link may belong to any process.
    package static func expectPlainCompanions(_ path: String) throws(StoreError) {
        for suffix in companions {
            guard let facts = FileFacts(path + suffix, followsLink: false), !facts.isRegular else {
                continue
            }
            throw .badCompanion(
                path: path,
                detail: "its \(suffix) file is \(facts.noun); expected a regular file")
        }
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
