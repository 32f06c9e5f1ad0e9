// Matches symbol files given on the command line to images, by build ID only: a Mach-O file's is its UUID.

internal import Foundation
internal import StallModel
internal import StallSymbols

/// The usable symbol files and directories from the command line.
struct SymbolFileSearch {
    private(set) var options = SymbolizerOptions()
    private(set) var refusals: [SymbolFileError] = []

    init(
        _ paths: [String], dSYMs: [String], debugDirectories: [String],
        for images: UnresolvedImages
    ) {
        // Here, unlike in the agent, no stalled app is waiting.
        options.budget = .seconds(24 * 3600)
        options.debugInformationLimit = 1 << 30
        for path in debugDirectories where !Self.isDirectory(path) {
            refusals.append(.notADirectory(path: path))
        }
        options.debugDirectories =
            debugDirectories.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
            + options.debugDirectories
        for path in dSYMs {
            if Self.isDirectory(path) {
                takeBundles(in: path, for: images)
            } else {
                note { () throws(SymbolFileError) in try Self.take(path, for: images) }
            }
        }
        for path in paths {
            if DSYMBundle(path) != nil {
                takeBundles(in: path, for: images)
            } else if Self.isDirectory(path) {
                search(path, for: images)
            } else {
                note { () throws(SymbolFileError) in try Self.take(path, for: images) }
            }
        }
    }

    private mutating func note(_ body: () throws(SymbolFileError) -> [Match]) {
        do throws(SymbolFileError) {
            for match in try body() { add(match) }
        } catch { refusals.append(error) }
    }

    /// A file and the build ID that one of its architectures has.
    private typealias Match = (file: SymbolFile, buildID: BuildID)

    private static func take(
        _ path: String, for images: UnresolvedImages
    ) throws(SymbolFileError) -> [Match] {
        guard FileManager.default.fileExists(atPath: path) else { throw .missing(path: path) }
        let files = try files(at: path)
        guard let first = files.first else { throw .unknownFormat(path: path) }
        let kind = first.isMachO ? BuildIDKind.machO : .elf
        let ids = files.compactMap(\.buildID)
        guard !ids.isEmpty else { throw .noBuildID(path: path, kind) }
        let matches = matches(files, images)
        guard matches.isEmpty else { return matches }
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let expected = images.buildIDs(ofImagesNamed: name)
        guard !expected.isEmpty else { throw .unknownImage(path: path, kind, has: ids) }
        throw .otherBuild(path: path, kind, has: ids, expected: expected, image: name)
    }

    private static func files(at path: String) throws(SymbolFileError) -> [SymbolFile] {
        do throws(MachOFault) { return try SymbolFile.files(at: path) } catch {
            throw .damagedMachO(path: path, error)
        }
    }

    private static func matches(_ files: [SymbolFile], _ images: UnresolvedImages) -> [Match] {
        files.compactMap { file in
            file.buildID.flatMap { images.has($0) ? (file, $0) : nil }
        }
    }

    /// Adds every file below the directory that belongs to an image; ignores all others.
    private mutating func search(_ directory: String, for images: UnresolvedImages) {
        let below = FileManager.default.enumerator(atPath: directory)
        for case let name as String in below ?? FileManager.DirectoryEnumerator() {
            let files = (try? SymbolFile.files(at: directory + "/" + name)) ?? []
            for match in Self.matches(files, images) { add(match) }
        }
    }

    /// Adds the files of a bundle, or those that belong to an image of all bundles below a directory: an archive of
    /// Xcode has them in `dSYMs`.
    private mutating func takeBundles(in directory: String, for images: UnresolvedImages) {
        if let bundle = DSYMBundle(directory) {
            for path in bundle.files {
                note { () throws(SymbolFileError) in try Self.take(path, for: images) }
            }
            if bundle.files.isEmpty { refusals.append(.noDSYM(path: directory)) }
            return
        }
        let bundles = DSYMBundle.all(below: directory)
        if bundles.isEmpty { refusals.append(.noDSYM(path: directory)) }
        for path in bundles.flatMap(\.files) {
            note { () throws(SymbolFileError) in Self.matches(try Self.files(at: path), images) }
        }
    }

    /// Files with more debug information first.
    private mutating func add(_ match: Match) {
        var paths = options.files[match.buildID, default: []]
        paths.insert(match.file.path, at: match.file.hasLines ? 0 : paths.count)
        options.files[match.buildID] = paths
    }

    private static func isDirectory(_ path: String) -> Bool {
        var isDirectory: ObjCBool = false
        return FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
            && isDirectory.boolValue
    }
}
