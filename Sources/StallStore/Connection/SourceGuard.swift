// What is looked at before a file is opened as a store: only regular files take part in reading one, and a journal that
// was left behind is rolled back in a private copy. SQLite itself opens whatever has the right name.

internal import Glibc
internal import StallModel

/// Looks at a store's file and those that SQLite puts beside it.
package enum SourceGuard {
    /// What SQLite opens beside a store, by its name.
    package static let companions = ["-wal", "-shm", "-journal"]

    /// Refuses a store that has something else than regular files beside it: a pipe is waited for, and what a link
    /// leads to may belong to any process.
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
    /// What it is, for a message.
    package var noun: String {
        if isSymbolicLink { return "a symbolic link" }
        if isDirectory { return "a directory" }
        return isRegular ? "a regular file" : "a pipe, socket or device"
    }
}
