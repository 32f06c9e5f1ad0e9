// Matches symbol files given on the command line to images, by build ID only.

internal import Foundation
internal import StallModel
internal import StallSymbols

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
