// The package's own sources as text, for the tests of its structure.

import Foundation
import TestSupport

/// The folder `Sources`.
enum SourceTree {
    /// The names of the modules.
    static func modules() throws -> [String] {
        try FileManager.default.contentsOfDirectory(
            atPath: Repository.root.appending(path: "Sources").path
        )
        .sorted()
    }

    /// The Swift files of a module, or those of other languages, each with its path and lines.
    static func files(
        of module: String, ending suffixes: [String] = [".swift"]
    ) throws -> [(path: String, lines: [String])] {
        let folder = Repository.root.appending(path: "Sources/\(module)").path
        let paths = FileManager.default.subpaths(atPath: folder) ?? []
        let wanted = paths.filter { path in suffixes.contains { path.hasSuffix($0) } }
        return try wanted.sorted().map { path in
            let text = try String(contentsOfFile: folder + "/" + path, encoding: .utf8)
            return ("\(module)/\(path)", text.components(separatedBy: "\n"))
        }
    }
}
