// The rules that a store is grouped by, as stallctl finds them without an option: beside the store.

internal import Foundation
internal import StallAnalysis

extension GroupingRules {
    /// - Throws: Why `stallwatch.rules` cannot be used.
    static func of(store: String) throws -> GroupingRules {
        let folder = URL(filePath: store).deletingLastPathComponent()
        let file = folder.appending(path: "stallwatch.rules")
        guard FileManager.default.fileExists(atPath: file.path) else { return .builtIn }
        return try GroupingRules(String(contentsOf: file, encoding: .utf8), file: file.path)
    }
}
