// A candidate file for symbolication.

package import StallModel

/// The content of a binary or a separate debug file.
package struct SymbolFile: Equatable, Sendable {
    package let path: String
    package let isMachO: Bool
    /// A Mach-O file's UUID.
    package let buildID: BuildID?
    /// Whether it has a full symbol table; a stripped binary has at most its exported names.
    package let hasSymbols: Bool
    /// Whether it has readable debug information: lines and inlined calls.
    package let hasLines: Bool
    /// Whether it has compressed debug information, which was not read unless `hasLines` is true.
    package let isCompressed: Bool

    /// Opens a file: one element, or one for each architecture of a fat Mach-O file.
    ///
    /// - Returns: None if it is not a readable ELF or Mach-O file.
    package static func files(at path: String) throws(MachOFault) -> [SymbolFile] {
        guard let bytes = FileBytes(path: path) else { return [] }
        return try objectFiles(in: bytes).map { SymbolFile(path: path, $0) }
    }

    init(path: String, _ file: any ObjectFile) {
        self.path = path
        isMachO = file is MachOFile
        buildID = file.buildID
        hasSymbols = file.hasSymbolTable
        hasLines = (file.size(of: ".debug_info") ?? 0) > 0
        isCompressed = file.hasCompressedDebugInformation
    }
}
