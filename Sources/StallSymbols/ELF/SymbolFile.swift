// A candidate file for symbolication.

package import StallModel

/// The content of a binary or a separate debug file.
package struct SymbolFile: Equatable, Sendable {
    package let path: String
    package let buildID: BuildID?
    /// Whether it has a full symbol table; a stripped binary has at most its exported names.
    package let hasSymbols: Bool
    /// Whether it has readable debug information: lines and inlined calls.
    package let hasLines: Bool
    /// Whether it has compressed debug information, which was not read unless `hasLines` is true.
    package let isCompressed: Bool

    /// Opens a file; nil if it is not a readable ELF file.
    package init?(path: String) {
        guard let bytes = FileBytes(path: path), let file = ELFFile(bytes) else { return nil }
        self.init(path: path, file)
    }

    init(path: String, _ file: ELFFile) {
        self.path = path
        buildID = file.buildID
        hasSymbols = file.hasSymbolTable
        hasLines = (file.size(of: ".debug_info") ?? 0) > 0
        isCompressed = file.hasCompressedDebugInformation
    }
}
