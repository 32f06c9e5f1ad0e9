// The errors of a symbol file that a user gave: the path, and what was expected there.

package import StallModel
package import StallSymbols

/// Why a given file is not used.
package enum SymbolFileError: Error, Hashable, Sendable, CustomStringConvertible {
    case missing(path: String)
    case unknownFormat(path: String)
    case damagedMachO(path: String, MachOFault)
    case noBuildID(path: String, BuildIDKind)
    /// Another build of an image that has locations to resolve.
    case otherBuild(
        path: String, BuildIDKind, has: [BuildID], expected: [BuildID], image: String)
    /// No image in the reports has one of these build IDs.
    case unknownImage(path: String, BuildIDKind, has: [BuildID])
    case notADirectory(path: String)
    /// Neither a bundle nor a directory with one.
    case noDSYM(path: String)

    package var path: String {
        switch self {
        case .missing(let path), .unknownFormat(let path), .damagedMachO(let path, _),
            .noBuildID(let path, _), .otherBuild(let path, _, _, _, _),
            .unknownImage(let path, _, _), .notADirectory(let path), .noDSYM(let path):
            path
        }
    }

    package var description: String {
        switch self {
        case .missing: "\(path): no such file"
        case .unknownFormat:
            "\(path): neither an ELF file nor a Mach-O file for arm64 or x86_64; expected a binary, "
                + "a separate debug file or a dSYM"
        case .damagedMachO(_, let fault): "\(path): not a valid Mach-O file: \(fault)"
        case .noBuildID(_, let kind):
            "\(path): no \(kind.rawValue); symbols are used only from a file with the "
                + "\(kind.rawValue) of the image that ran"
        case .otherBuild(_, let kind, let has, let expected, let image):
            "\(path): \(kind.text(has)), but the reports' \(image) has "
                + kind.listed(expected) + "; not used"
        case .unknownImage(_, let kind, let has):
            "\(path): \(kind.text(has)) matches no image in these reports; not used"
        case .notADirectory: "\(path): no such directory"
        case .noDSYM: "\(path): no dSYM bundle in this directory"
        }
    }
}

/// The name and spelling of a build ID.
package enum BuildIDKind: String, Sendable {
    case elf = "build ID"
    case machO = "UUID"

    fileprivate func text(_ ids: [BuildID]) -> String { rawValue + " " + listed(ids) }

    fileprivate func listed(_ ids: [BuildID]) -> String {
        StallSymbolFiles.listed(
            ids.prefix(4).map { self == .machO ? $0.uuid : $0.description })
    }
}

extension BuildID {
    /// As dwarfdump and Xcode write it.
    fileprivate var uuid: String {
        guard bytes.count == 16 else { return description }
        let digits = Array(description.uppercased())
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }
            .joined(separator: "-")
    }
}

/// `a`, `a and b`, `a, b and c`.
private func listed(_ ids: [String]) -> String {
    guard ids.count > 1 else { return ids.first ?? "" }
    return ids.dropLast().joined(separator: ", ") + " and " + ids.last!
}
