// The parts of an ELF file that symbolication needs: segments, build ID, symbol tables. Every number in the file is
// checked before its use: an invalid or hostile file yields fewer names, never a crash or a large allocation.
//
// The symbol table is streamed once for all addresses: memory does not grow with the file, and a 70 MB executable takes
// a few milliseconds.

package import StallModel

/// A 64-bit little-endian ELF file. **Source:** System V ABI, "Object Files"; elf(5).
package struct ELFFile: ObjectFile {
    /// The lowest address of its segments as linked, and one past the highest.
    let lowestAddress: UInt64
    let highestAddress: UInt64
    package let buildID: BuildID?
    private let source: any ByteSource
    private let sections: [Section]
    private let sectionNumbers: [String: Int]
    private let compressed: CompressedSections?

    /// Nil if the bytes are not such a file or it maps no segments.
    init?(_ source: any ByteSource, decompressor: SectionDecompressor? = nil) {
        guard let header = Fields(source, at: 0, count: 64),
            header.uint32(0) == 0x464c_457f, header.bytes[4] == 2, header.bytes[5] == 1
        else { return nil }
        let segments = Self.table(
            source, at: header.uint64(32), count: UInt64(header.uint16(56)),
            entrySize: header.uint16(54), expectedSize: 56
        ).map(Segment.init)
        self.source = source
        compressed = decompressor.map(CompressedSections.init)
        sections = Self.sections(source, header)
        sectionNumbers = Self.numbers(of: sections, namedIn: Int(header.uint16(62)), source)

        let loaded = segments.filter { $0.type == 1 && $0.address &+ $0.memorySize >= $0.address }
        guard let lowest = loaded.map(\.address).min(),
            let highest = loaded.map({ $0.address + $0.memorySize }).max()
        else { return nil }
        (lowestAddress, highestAddress) = (lowest, highest)

        // A separate debug file has note sections; a file without sections has only segments.
        let notes =
            sections.filter { $0.type == 7 }.map { ($0.offset, $0.size, $0.alignment) }
            + segments.filter { $0.type == 4 }.map { ($0.offset, $0.fileSize, $0.alignment) }
        buildID =
            notes.lazy.compactMap { offset, size, alignment in
                source.bytes(at: offset, count: min(size, 1 << 16)).flatMap {
                    BuildID(inNotes: $0, alignment: alignment)
                }
            }.first
    }

    /// The symbols with these names that other images can use.
    func exports(named names: [String]) -> [String: Symbol] {
        guard let table = contents(of: ".dynsym", limit: 16 << 20),
            let texts = contents(of: ".dynstr", limit: 64 << 20)
        else { return [:] }
        let wanted = names.map { (name: $0, text: Array($0.utf8) + [0]) }
        var found: [String: Symbol] = [:]
        table.withUnsafeBytes { table in
            for index in 0..<table.count / Symbol.size {
                let symbol = Symbol(table, at: index * Symbol.size)
                guard symbol.isDefined, symbol.name < texts.count else { continue }
                let text = texts[Int(symbol.name)...]
                if let match = wanted.first(where: { text.starts(with: $0.text) }) {
                    found[match.name] = symbol
                }
            }
        }
        return found
    }

    /// The function symbols that contain these addresses.
    package func symbols(at addresses: [UInt64]) -> [UInt64: String] {
        namedSymbols(at: addresses).named.mapValues(\.name)
    }

    func namedSymbols(at addresses: [UInt64]) -> NamedSymbols {
        var symbols = NamedSymbols()
        var isComplete = false
        // The full table first; libraries without one still have exported names in the dynamic table.
        for type: UInt32 in [2, 11] {
            for table in sections where table.type == type {
                let rest = addresses.filter { symbols.named[$0] == nil }
                guard !rest.isEmpty else { return symbols }
                var search = SymbolSearch(addresses: rest)
                scan(table, for: &search)
                if type == 2, search.hasLocalFunctions { isComplete = true }
                for (address, candidates) in search.answers(sections: sections) {
                    symbols.named[address] = bestName(candidates, of: table)
                }
            }
        }
        if isComplete {
            symbols.merged = Set(addresses.filter { symbols.named[$0] == nil && isText($0) })
        }
        return symbols
    }

    /// Whether compilers put a function there; linkers and assemblers fill other sections of code.
    private func isText(_ address: UInt64) -> Bool {
        [".text", ".text.hot", ".text.unlikely"].contains { name in
            sectionNumbers[name].map { sections[$0].holds(address) } ?? false
        }
    }

    /// A part of a section; nil if the section is shorter.
    func contents(of name: String, from start: UInt64, count: UInt64) -> [UInt8]? {
        guard let size = size(of: name), start <= size, count <= size - start else { return nil }
        if let section = section(name) {
            return source.bytes(at: section.offset &+ start, count: count)
        }
        return decompressed(name).map { Array($0[Int(start)..<Int(start + count)]) }
    }

    func size(of name: String) -> UInt64? {
        section(name)?.size ?? decompressed(name).map { UInt64($0.count) }
    }

    /// The name of the separate file with this one's debug information.
    var debugLink: String? { string(inSection: ".gnu_debuglink", at: 0) }

    var hasSymbolTable: Bool { sections.contains { $0.type == 2 } }

    var hasUnboundedSymbols: Bool { false }

    /// Whether the file has compressed debug information, which is only read if the caller supplied a decompressor.
    var hasCompressedDebugInformation: Bool {
        sectionNumbers[".zdebug_info"] != nil
            || sectionNumbers[".debug_info"].map { sections[$0].flags & 0x800 != 0 } ?? false
    }

    /// One zero-ended string of a section.
    func string(inSection name: String, at index: UInt64) -> String? {
        if let section = section(name) { return string(at: index, of: section) }
        guard let bytes = decompressed(name), index < bytes.count else { return nil }
        let text = bytes[Int(index)...].prefix(1 << 14).prefix { $0 != 0 }
        return text.isEmpty ? nil : String(decoding: text, as: UTF8.self)
    }

    private func decompressed(_ name: String) -> [UInt8]? {
        guard let compressed, let section = sectionNumbers[name].map({ sections[$0] }),
            section.flags & 0x800 != 0
        else { return nil }
        return compressed.bytes(
            of: name, at: section.offset, size: section.size, in: source)
    }

    private func section(_ name: String) -> Section? {
        // Compressed (flag 0x800) or without contents in this file (type 8).
        sectionNumbers[name].map { sections[$0] }.flatMap {
            $0.flags & 0x800 == 0 && $0.type != 8 ? $0 : nil
        }
    }

    private func scan(_ table: Section, for search: inout SymbolSearch) {
        let entry = UInt64(Symbol.size)
        var offset = table.offset
        var left = min(table.size, source.size &- min(offset, source.size)) / entry
        while left > 0 {
            let count = min(left, 4096)
            guard let bytes = source.bytes(at: offset, count: count * entry) else { return }
            bytes.withUnsafeBytes { bytes in
                for index in 0..<Int(count) {
                    search.consider(Symbol(bytes, at: index * Symbol.size))
                }
            }
            offset += count * entry
            left -= count
        }
    }

    private func bestName(_ candidates: [Symbol], of table: Section) -> NamedSymbol? {
        guard let first = candidates.first, sections.indices.contains(Int(table.link)) else {
            return nil
        }
        let strings = sections[Int(table.link)]
        let names = candidates.compactMap { symbol in
            string(at: UInt64(symbol.name), of: strings).map { text in
                CandidateName(
                    name: FunctionName(
                        text: text, isWeak: symbol.isWeak, isIndirect: symbol.isIndirect),
                    isLocal: symbol.isLocal)
            }
        }
        return names.best(start: first.value, areAll: table.type == 2)
    }

    private func string(at index: UInt64, of strings: Section) -> String? {
        source.string(at: index, inTableAt: strings.offset, size: strings.size)
    }
}

// MARK: - Tables

extension ELFFile {
    private struct Segment {
        let type: UInt32
        let offset, address, fileSize, memorySize, alignment: UInt64

        init(_ fields: Fields) {
            type = fields.uint32(0)
            offset = fields.uint64(8)
            address = fields.uint64(16)
            fileSize = fields.uint64(32)
            memorySize = fields.uint64(40)
            alignment = fields.uint64(48)
        }
    }

    struct Section {
        let name, type, link: UInt32
        let flags, address, offset, size, alignment: UInt64

        init(_ fields: Fields) {
            name = fields.uint32(0)
            flags = fields.uint64(8)
            type = fields.uint32(4)
            address = fields.uint64(16)
            offset = fields.uint64(24)
            size = fields.uint64(32)
            link = fields.uint32(40)
            alignment = fields.uint64(48)
        }

        func holds(_ address: UInt64) -> Bool {
            address >= self.address && address - self.address < size
        }
    }

    private static func sections(_ source: any ByteSource, _ header: Fields) -> [Section] {
        let (offset, size) = (header.uint64(40), header.uint16(58))
        // With 65,280 sections or more, the first section contains the count.
        let first = header.uint16(60) == 0 ? Fields(source, at: offset, count: 64) : nil
        let count = first?.uint64(32) ?? UInt64(header.uint16(60))
        return table(source, at: offset, count: count, entrySize: size, expectedSize: 64).map(
            Section.init)
    }

    private static func numbers(
        of sections: [Section], namedIn names: Int, _ source: any ByteSource
    ) -> [String: Int] {
        guard sections.indices.contains(names), sections[names].size <= 1 << 20,
            let bytes = source.bytes(at: sections[names].offset, count: sections[names].size)
        else { return [:] }
        let numbered = sections.enumerated().compactMap { number, section -> (String, Int)? in
            guard section.name < bytes.count else { return nil }
            let name = bytes[Int(section.name)...].prefix { $0 != 0 }
            return (String(decoding: name, as: UTF8.self), number)
        }
        return Dictionary(numbered) { first, _ in first }
    }

    private static func table(
        _ source: any ByteSource, at offset: UInt64, count: UInt64, entrySize: UInt16,
        expectedSize: UInt64
    ) -> [Fields] {
        guard offset > 0, count <= 1 << 17, UInt64(entrySize) == expectedSize,
            let bytes = source.bytes(at: offset, count: count * expectedSize)
        else { return [] }
        return (0..<Int(count)).map {
            Fields(bytes: Array(bytes[$0 * Int(expectedSize)..<($0 + 1) * Int(expectedSize)]))
        }
    }
}

/// Little-endian numbers at fixed offsets of a record whose length was checked.
struct Fields {
    let bytes: [UInt8]

    init(bytes: [UInt8]) { self.bytes = bytes }

    init?(_ source: any ByteSource, at offset: UInt64, count: UInt64) {
        guard let bytes = source.bytes(at: offset, count: count) else { return nil }
        self.bytes = bytes
    }

    func uint16(_ at: Int) -> UInt16 { load(at) }
    func uint32(_ at: Int) -> UInt32 { load(at) }
    func uint64(_ at: Int) -> UInt64 { load(at) }

    private func load<Number: FixedWidthInteger>(_ at: Int) -> Number {
        bytes.withUnsafeBytes {
            Number(littleEndian: $0.loadUnaligned(fromByteOffset: at, as: Number.self))
        }
    }
}
