// Takes the reports of other stores over into a central store.

/// What became of one file that `ingest` was given or found.
package struct IngestFileResult: Hashable, Sendable {
    package enum Outcome: Hashable, Sendable {
        /// Reports that the central store did not have, and ones it had that have changed since.
        case taken(added: Int, changed: Int)
        /// Nothing of the file was taken over.
        case skipped(StoreError)
    }
    package var path: String
    package var outcome: Outcome
}

/// What one run of `ingest` did.
package struct IngestSummary: Hashable, Sendable {
    /// In the order they were taken.
    package var files: [IngestFileResult]

    package var addedCount: Int {
        files.reduce(0) { sum, file in
            if case .taken(let added, _) = file.outcome { sum + added } else { sum }
        }
    }
    package var changedCount: Int {
        files.reduce(0) { sum, file in
            if case .taken(_, let changed) = file.outcome { sum + changed } else { sum }
        }
    }
    package var skippedCount: Int {
        files.count { file in if case .skipped = file.outcome { true } else { false } }
    }
}

/// How far a run of `ingest` is.
package struct IngestProgress: Hashable, Sendable {
    package var filesDone: Int
    package var fileCount: Int
    package var reportsTaken: Int
}

/// Copies what is new in other stores into one central store.
package struct Ingest {
    /// Opens the central store; creates or migrates it where needed.
    package init(into path: String) throws(StoreError) {
        fatalError("\(path): follows in the next commit")
    }

    /// Takes over every store among the paths; directories are searched with all that is below them.
    ///
    /// A file that cannot be taken is skipped, whole, with its reason in the summary. Run it again, at the
    /// same time, or kill it: nothing is taken twice, and nothing half.
    ///
    /// - Throws: only what is wrong with the central store.
    package func run(
        _ paths: [String], progress: (IngestProgress) -> Void = { _ in }
    ) throws(StoreError) -> IngestSummary {
        fatalError("follows in the next commit")
    }
}
