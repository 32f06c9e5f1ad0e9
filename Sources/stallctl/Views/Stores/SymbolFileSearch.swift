// Matches symbol files given on the command line to images, by build ID only.

internal import Foundation
internal import StallModel
internal import StallSymbols

/// The images with locations to resolve that have a build ID, without duplicates.
struct UnresolvedImages {
    let images: [Image]

    init(_ locations: [CodeLocation]) {
        var seen: Set<Image> = []
        images = locations.compactMap { location in
            guard let path = location.imagePath, let buildID = location.buildID else { return nil }
            // The load address is irrelevant: locations are offsets.
            let image = Image(path: path, buildID: buildID, loadAddress: 0, endAddress: .max)
            return seen.insert(image).inserted ? image : nil
        }
    }

    func has(_ buildID: BuildID) -> Bool { images.contains { $0.buildID == buildID } }

    /// The build IDs of the images with this file's name.
    func buildIDs(ofImagesNamed file: String) -> [BuildID] {
        let name = file.hasSuffix(".debug") ? String(file.dropLast(6)) : file
        return images.filter { $0.name == name }.compactMap(\.buildID)
    }
}

/// Why a given file is not used.
enum SymbolFileError: Error, Hashable, CustomStringConvertible {
    case missing(path: String)
    case notELF(path: String)
    case noBuildID(path: String)
    /// Another build of an image that has locations to resolve.
    case otherBuild(path: String, has: BuildID, expected: [BuildID], image: String)
    /// No image in the reports has this build ID.
    case unknownImage(path: String, has: BuildID)
    case notADirectory(path: String)

    var path: String {
        switch self {
        case .missing(let path), .notELF(let path), .noBuildID(let path),
            .otherBuild(let path, _, _, _), .unknownImage(let path, _), .notADirectory(let path):
            path
        }
    }

    var description: String {
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

/// The usable symbol files and directories from the command line.
struct SymbolFileSearch {
    private(set) var options = SymbolizerOptions()
    private(set) var refusals: [SymbolFileError] = []

    init(_ paths: [String], debugDirectories: [String], for images: UnresolvedImages) {
        // Here, unlike in the agent, no stalled app is waiting.
        options.budget = .seconds(24 * 3600)
        options.debugInformationLimit = 1 << 30
        for path in debugDirectories where !Self.isDirectory(path) {
            refusals.append(.notADirectory(path: path))
        }
        options.debugDirectories =
            debugDirectories.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
            + options.debugDirectories
        for path in paths {
            if Self.isDirectory(path) {
                search(path, for: images)
            } else {
                do throws(SymbolFileError) { try take(path, for: images) } catch {
                    refusals.append(error)
                }
            }
        }
    }

    private mutating func take(_ path: String, for images: UnresolvedImages) throws(SymbolFileError)
    {
        guard FileManager.default.fileExists(atPath: path) else { throw .missing(path: path) }
        guard let file = SymbolFile(path: path) else { throw .notELF(path: path) }
        guard let buildID = file.buildID else { throw .noBuildID(path: path) }
        guard images.has(buildID) else {
            let name = path.split(separator: "/").last.map(String.init) ?? path
            let expected = images.buildIDs(ofImagesNamed: name)
            guard !expected.isEmpty else { throw .unknownImage(path: path, has: buildID) }
            throw .otherBuild(path: path, has: buildID, expected: expected, image: name)
        }
        add(file, buildID)
    }

    /// Adds every file below the directory that belongs to an image; ignores all others.
    private mutating func search(_ directory: String, for images: UnresolvedImages) {
        let below = FileManager.default.enumerator(atPath: directory)
        for case let name as String in below ?? FileManager.DirectoryEnumerator() {
            guard let file = SymbolFile(path: directory + "/" + name), let buildID = file.buildID,
                images.has(buildID)
            else { continue }
            add(file, buildID)
        }
    }

    /// Files with more debug information first.
    private mutating func add(_ file: SymbolFile, _ buildID: BuildID) {
        var paths = options.files[buildID, default: []]
        paths.insert(file.path, at: file.hasLines ? 0 : paths.count)
        options.files[buildID] = paths
    }

    private static func isDirectory(_ path: String) -> Bool {
        var isDirectory: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
            && isDirectory.boolValue
    }
}
