// A file that names may come from, as one looks at it before using it.

package import StallModel

/// What a binary or a separate debug file has to offer.
package struct SymbolFile: Hashable, Sendable {
    package let path: String
    package let buildID: BuildID?
    /// It has a full symbol table; a stripped binary has at most the names that it exports.
    package let hasSymbols: Bool
    /// It has debug information that can be read: lines and inlined calls.
    package let hasLines: Bool
    /// It has compressed debug information, which was not read unless it has lines, too.
    package let isCompressed: Bool

    /// Looks at a file; nil when it is no ELF file, or not readable.
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
