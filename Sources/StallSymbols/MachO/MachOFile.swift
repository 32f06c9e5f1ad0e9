// A binary of Apple's systems, or the file with its symbols in a dSYM bundle, for the reports of such systems. As of
// ELF files, every number in it is checked before its use, and the symbol table is streamed.

internal import StallModel

/// A 64-bit Mach-O file for one architecture.
///
/// **Source:** Apple, <mach-o/loader.h>; "OS X ABI Mach-O File Format Reference".
struct MachOFile: ObjectFile {
    let buildID: BuildID?
    /// Where the segment `__TEXT` is as linked: the load address is that of its first byte.
    let lowestAddress: UInt64
    let highestAddress: UInt64
    private let source: any ByteSource
    private let commands: MachOCommands
    private let debugSections: [String: MachOCommands.Section]

    init(_ source: any ByteSource) throws(MachOFault) {
        self.source = source
        commands = try MachOCommands(source)
        guard let text = commands.text else {
            throw MachOFault(
                "the load commands at byte 32",
                "have no segment __TEXT; expected a linked binary or a dSYM")
        }
        buildID = commands.uuid
        lowestAddress = text.address
        highestAddress = text.address + text.size
        debugSections = Dictionary(
            commands.sections.lazy.filter { $0.segment == "__DWARF" }.map { ($0.name, $0) }
        ) { first, _ in first }
    }

    var hasSymbolTable: Bool { (commands.symbols?.count ?? 0) > 0 }
    var hasCompressedDebugInformation: Bool { false }
    var debugLink: String? { nil }
    var hasUnboundedSymbols: Bool { true }

    func exports(named names: [String]) -> [String: Symbol] { [:] }

    func namedSymbols(at addresses: [UInt64]) -> NamedSymbols {
        var symbols = NamedSymbols()
        guard let table = commands.symbols else { return symbols }
        var search = MachOSymbolSearch(addresses: addresses, sections: commands.sections)
        table.forEachSymbol(in: source) { search.consider($0) }
        let starts = commands.functionStarts.map {
            FunctionStarts(source, at: $0.offset, size: $0.size, text: lowestAddress)
        }
        for (address, candidates) in search.answers(
            starts: starts?.last(before: search.addresses) ?? [:])
        {
            let names = candidates.compactMap { symbol in
                table.name(of: symbol, in: source).map { name in
                    CandidateName(
                        name: FunctionName(text: name, isWeak: symbol.isWeak),
                        isLocal: symbol.isLocal)
                }
            }
            symbols.named[address] = names.best(
                start: candidates[0].value, areAll: search.hasLocalFunctions)
        }
        return symbols
    }

    // MARK: - Sections

    func size(of name: String) -> UInt64? { section(name)?.size }

    func contents(of name: String, from start: UInt64, count: UInt64) -> [UInt8]? {
        guard let section = section(name), start <= section.size, count <= section.size - start
        else { return nil }
        return source.bytes(at: UInt64(section.offset) + start, count: count)
    }

    func string(inSection name: String, at index: UInt64) -> String? {
        section(name).flatMap {
            source.string(at: index, inTableAt: UInt64($0.offset), size: $0.size)
        }
    }

    /// `.debug_str_offsets` is `__debug_str_offs`: names have at most 16 bytes.
    private func section(_ name: String) -> MachOCommands.Section? {
        debugSections[String("__\(name.dropFirst())".prefix(16))]
    }
}
