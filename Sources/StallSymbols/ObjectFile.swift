// Binaries and debug files of both formats, as the symbolizer and the readers of DWARF use them. Sections have their
// names in ELF; MachOFile has others for them.

internal import StallModel

/// One binary for one architecture, with its symbols and debug sections.
protocol ObjectFile {
    var buildID: BuildID? { get }
    /// The address as linked that offsets into the image count from, and one past the highest of the image.
    var lowestAddress: UInt64 { get }
    var highestAddress: UInt64 { get }
    var hasSymbolTable: Bool { get }
    var hasCompressedDebugInformation: Bool { get }
    /// The name of the separate file with this one's debug information.
    var debugLink: String? { get }
    /// Symbols have no sizes, so that one may seem to contain a function without a symbol: debug information, which
    /// has the function's range, then provides its name.
    var hasUnboundedSymbols: Bool { get }

    func namedSymbols(at addresses: [UInt64]) -> NamedSymbols
    /// The symbols with these names that other images can use.
    func exports(named names: [String]) -> [String: Symbol]

    /// A section's size; nil if the section is missing or cannot be decompressed.
    func size(of name: String) -> UInt64?
    /// A part of a section; nil if the section is shorter.
    func contents(of name: String, from start: UInt64, count: UInt64) -> [UInt8]?
    /// One zero-ended string of a section.
    func string(inSection name: String, at index: UInt64) -> String?
}

extension ObjectFile {
    /// The bytes of a section by name; nil if it is missing, cannot be decompressed, or exceeds `limit`.
    func contents(of name: String, limit: UInt64) -> [UInt8]? {
        guard let size = size(of: name), size <= limit else { return nil }
        return contents(of: name, from: 0, count: size)
    }
}

/// The files in these bytes: one, or one for each architecture; none if they are neither ELF nor Mach-O.
func objectFiles(
    in source: any ByteSource, decompressor: SectionDecompressor? = nil
) throws(MachOFault) -> [any ObjectFile] {
    if let file = ELFFile(source, decompressor: decompressor) { return [file] }
    return try MachOFile.files(in: source)
}
