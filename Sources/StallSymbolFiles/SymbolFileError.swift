// The errors of a symbol file that a user gave: the path, and what was expected there.

package import StallModel

/// Why a given file is not used.
package enum SymbolFileError: Error, Hashable, Sendable, CustomStringConvertible {
    case missing(path: String)
    case notELF(path: String)
    case noBuildID(path: String)
    /// Another build of an image that has locations to resolve.
    case otherBuild(path: String, has: BuildID, expected: [BuildID], image: String)
    /// No image in the reports has this build ID.
    case unknownImage(path: String, has: BuildID)
    case notADirectory(path: String)

    package var path: String {
        switch self {
        case .missing(let path), .notELF(let path), .noBuildID(let path),
            .otherBuild(let path, _, _, _), .unknownImage(let path, _), .notADirectory(let path):
            path
        }
    }

    package var description: String {
        switch self {
        case .missing: "\(path): no such file"
        case .notELF: "\(path): not an ELF file; expected a binary or a separate debug file"
        case .noBuildID:
            "\(path): no build ID; symbols are used only from a file with the build ID of the image that ran"
        case .otherBuild(_, let has, let expected, let image):
            "\(path): build ID \(has), but the reports' \(image) has "
                + listed(expected.prefix(4).map(\.description)) + "; not used"
        case .unknownImage(_, let has):
            "\(path): build ID \(has) matches no image in these reports; not used"
        case .notADirectory: "\(path): no such directory"
        }
    }
}

/// `a`, `a and b`, `a, b and c`.
private func listed(_ ids: [String]) -> String {
    guard ids.count > 1 else { return ids.first ?? "" }
    return ids.dropLast().joined(separator: ", ") + " and " + ids.last!
}
