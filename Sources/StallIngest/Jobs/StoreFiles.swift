// Finds the stores that a job was given, for jobs that do not import them.

package import StallStore

/// Stores among paths: files, and those below directories.
package struct StoreFiles {
    /// In the order given; within a directory by name.
    package private(set) var stores: [String] = []
    /// The given paths that are no store, or cannot be read.
    package private(set) var skipped: [StoreError] = []

    package init(_ paths: [String], allowsUnmatched: Bool) {
        let found = SourceFiles(
            SourcePaths.expanding(paths, allowsUnmatched: allowsUnmatched), except: nil)
        for file in found.files where file.kind == .store { stores.append(file.path) }
        for result in found.skipped {
            if case .skipped(let error) = result.outcome { skipped.append(error) }
        }
    }
}
