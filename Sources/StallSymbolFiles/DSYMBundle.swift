// The bundles that Xcode and dsymutil write symbols into.

internal import Foundation

/// A directory with the files of symbols in `Contents/Resources/DWARF`.
struct DSYMBundle {
    /// In the order of their names. One for each binary, most often one.
    let files: [String]

    /// Nil if the directory is none.
    init?(_ path: String) {
        let directory = (path.hasSuffix("/") ? path : path + "/") + "Contents/Resources/DWARF"
        guard let names = try? FileManager.default.contentsOfDirectory(atPath: directory) else {
            return nil
        }
        files = names.sorted().map { directory + "/" + $0 }
    }

    /// Those below a directory. Links are not followed.
    static func all(below directory: String) -> [DSYMBundle] {
        let below = FileManager.default.enumerator(atPath: directory)
        var bundles: [DSYMBundle] = []
        for case let name as String in below ?? FileManager.DirectoryEnumerator()
        where name.hasSuffix(".dSYM") {
            if let bundle = DSYMBundle(directory + "/" + name) { bundles.append(bundle) }
        }
        return bundles
    }
}
