// Finds the stores and the files of reports that a job was given, for jobs that do not import them.

package import StallStore

/// Stores and files of reports among paths: files, and those below directories.
package struct StoreFiles {
    /// In the order given; within a directory by name.
    package private(set) var stores: [String] = []
    /// Files of reports, in the same order; `-` is standard input.
    package private(set) var reports: [String] = []
    /// The given paths that are neither, or cannot be read.
    package private(set) var skipped: [StoreError] = []

    /// - Parameter isReports: Whether a file that is neither a store nor named as lines has reports.
    package init(
        _ paths: [String], allowsUnmatched: Bool,
        isReports: @escaping (_ path: String) -> Bool = { _ in false }
    ) {
        let found = SourceFiles(
            SourcePaths.expanding(paths, allowsUnmatched: allowsUnmatched), except: nil,
            isReports: isReports)
        for file in found.files {
            switch file.kind {
            case .store: stores.append(file.path)
            case .lines: reports.append(file.path)
            }
        }
        for result in found.skipped {
            if case .skipped(let error) = result.outcome { skipped.append(error) }
        }
    }

    /// Whether a file begins as a store does.
    package static func isStore(_ path: String) -> Bool { SourceFiles.isStore(path) }
}
