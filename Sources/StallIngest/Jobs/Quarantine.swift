// Files that a periodic job could not import, so that each is reported once, not at every run. A file that changes is
// retried.

internal import Glibc
internal import StallStore

/// A file that was broken when a job saw it last: a line of the list beside the store.
package struct QuarantinedFile: Codable, Hashable, Sendable {
    package var path: String
    var bytes: Int64
    /// Seconds since 1970.
    var modified: Double
    var error: String

    /// Nil if nothing is at the path. Does not follow links: a dangling link still exists.
    init?(_ path: String, error: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.path = path
        bytes = Int64(status.st_size)
        modified = Double(status.st_mtim.tv_sec) + Double(status.st_mtim.tv_nsec) / 1e9
        self.error = error
    }

    /// Whether the file is now as it was. To the microsecond: programs round the time in their own ways.
    fileprivate var isUnchanged: Bool {
        guard let now = QuarantinedFile(path, error: error) else { return false }
        return now.bytes == bytes && abs(now.modified - modified) < 1e-6
    }
}

/// The files in quarantine beside a store.
package struct Quarantine {
    /// Where the list is kept, one JSON object per line.
    package let path: String
    private var entries: [String: QuarantinedFile]

    /// - Parameter read: Reads the list at a path.
    package init(store: String, read: (_ path: String) -> [QuarantinedFile]) {
        path = store + "-quarantine.jsonl"
        entries = Dictionary(read(path).map { ($0.path, $0) }) { _, last in last }
    }

    package var count: Int { entries.count }

    /// The list, in the order of the paths.
    package var files: [QuarantinedFile] { entries.values.sorted { $0.path < $1.path } }

    /// Whether the file is quarantined and unchanged since.
    package func holds(_ path: String) -> Bool { entries[path]?.isUnchanged ?? false }

    /// Adds files that failed, and removes files that no longer do.
    ///
    /// - Returns: Whether the list is another one now.
    package mutating func note(_ results: [IngestFileResult]) -> Bool {
        let before = entries
        for file in results {
            if case .skipped(let error) = file.outcome, error.isOfTheFile {
                entries[file.path] = QuarantinedFile(file.path, error: error.description)
            } else {
                entries[file.path] = nil
            }
        }
        for (path, entry) in entries where QuarantinedFile(path, error: entry.error) == nil {
            entries[path] = nil
        }
        return entries != before
    }
}

extension StoreError {
    /// Whether the file itself is broken until it changes, as opposed to a lock, missing permissions or a full disk.
    fileprivate var isOfTheFile: Bool {
        switch self {
        case .notAFile, .symbolicLink, .empty, .notADatabase, .foreign, .wrongRole,
            .newer, .damaged, .overBudget,
            .sharedIdentity:
            true
        default: false
        }
    }
}
