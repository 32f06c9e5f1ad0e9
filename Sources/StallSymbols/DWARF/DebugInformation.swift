// The source lines of addresses and the calls inlined there: DWARF 2 to 5, as written by swiftc, clang and gcc.
// docs/decisions explains why this uses no library. One pass over the units that contain the addresses finds all of
// them; other units are skipped by their headers.

/// The calls and lines at one address, innermost first. All functions but the last were inlined into the next one.
struct SourceContext {
    struct Position {
        /// The inlined function's symbol or name; nil for the last, which is named by the symbol table.
        var function: String?
        var file: String?
        var line: Int?
    }
    var positions: [Position]
}

struct DebugInformation {
    var sections: DebugSections
    private let isOverBudget: () -> Bool
    /// The budget was used up before the end: absent entries may exist.
    private(set) var isCut = false
    private var lastReferenced: WholeUnit?

    /// Nil if the file has no debug information. Units of more than `limit` bytes are skipped.
    init?(_ file: ELFFile, limit: UInt64, isOverBudget: @escaping () -> Bool) {
        guard let sections = DebugSections(file, limit: limit) else { return nil }
        self.sections = sections
        self.isOverBudget = isOverBudget
    }

    /// The source context of each address. Addresses that exceed the time budget are absent.
    mutating func contexts(at addresses: [UInt64]) -> [UInt64: SourceContext] {
        let wanted = Array(Set(addresses)).sorted()
        var contexts: [UInt64: SourceContext] = [:]
        var start: UInt64 = 0
        while contexts.count < wanted.count, mayContinue(), let unit = unit(at: start) {
            start += UInt64(unit.header.size)
            let covered = ranges(of: unit.root, unit)
            let here = wanted.filter { address in
                contexts[address] == nil && covered.contains { $0.contains(address) }
            }
            guard !here.isEmpty else { continue }
            let found = self.contexts(at: here, in: unit)
            // A name may have been cut short.
            guard !isCut else { break }
            contexts.merge(found) { first, _ in first }
        }
        return contexts
    }

    private mutating func mayContinue() -> Bool {
        if !isCut, isOverBudget() { isCut = true }
        return !isCut
    }

    private mutating func contexts(
        at addresses: [UInt64], in unit: Unit
    ) -> [UInt64: SourceContext] {
        guard let calls = inlinedCalls(at: addresses, in: unit) else { return [:] }
        let directory = unit.root.compilationDirectory.flatMap { text($0, unit) }
        let lines = unit.root.lineProgram.flatMap {
            LineProgram(&sections, at: $0, directory: directory)
        }
        let rows = lines?.rows(at: addresses) ?? [:]
        var contexts: [UInt64: SourceContext] = [:]
        for address in addresses {
            var positions: [SourceContext.Position] = []
            var file = rows[address].flatMap { lines?.path(of: $0.file) }
            var line = rows[address]?.line
            // The innermost function is at the address; each outer one is at its call of the inner one.
            for call in (calls[address] ?? []).reversed() {
                positions.append(
                    .init(function: call.function, file: line == nil ? nil : file, line: line))
                file = lines?.path(of: call.file)
                line = call.line > 0 && file != nil ? Int(clamping: call.line) : nil
            }
            positions.append(.init(function: nil, file: line == nil ? nil : file, line: line))
            contexts[address] = SourceContext(positions: positions)
        }
        return contexts
    }

    // MARK: - Inlined calls

    private struct InlinedCall {
        var function: String?
        var file: UInt64
        var line: UInt64
    }

    /// The inlined calls around each address, outermost first; nil if the unit cannot be parsed to its end.
    private mutating func inlinedCalls(
        at addresses: [UInt64], in unit: Unit
    ) -> [UInt64: [InlinedCall]]? {
        guard let unit = whole(unit) else { return nil }
        var calls: [UInt64: [InlinedCall]] = [:]
        var cursor = ByteCursor(unit.bytes, at: unit.header.entries)
        var count = 0
        while !cursor.isAtEnd {
            count += 1
            if count % 4096 == 0, !mayContinue() { return nil }
            let code = cursor.uleb()
            guard code != 0 else { continue }
            guard let abbreviation = unit.abbreviations[code] else { return nil }
            guard abbreviation.tag == 0x1d else {  // inlined_subroutine
                guard cursor.skipEntry(abbreviation) else { return nil }
                continue
            }
            guard let entry = cursor.entry(abbreviation) else { return nil }
            let covered = ranges(of: entry, unit.unit)
            for address in addresses where covered.contains(where: { $0.contains(address) }) {
                let function = entry.origin.flatMap { name(of: $0, unit, depth: 0) }
                calls[address, default: []].append(
                    InlinedCall(function: function, file: entry.callFile, line: entry.callLine))
            }
        }
        return calls
    }

    /// The symbol of the entry that a reference points to, through specifications and abstract origins.
    private mutating func name(of reference: AttributeValue, _ unit: WholeUnit, depth: Int)
        -> String?
    {
        var unit = unit
        let offset: UInt64
        switch reference {
        case .unitReference(let distance): offset = distance
        case .sectionReference(let target):
            if !unit.holds(target) {
                guard let other = self.unit(holding: target) else { return nil }
                unit = other
            }
            offset = target - unit.header.start
        default: return nil
        }
        guard depth < 8, offset < UInt64(unit.bytes.count) else { return nil }
        var cursor = ByteCursor(unit.bytes, at: Int(offset))
        guard let abbreviation = unit.abbreviations[cursor.uleb()],
            let entry = cursor.entry(abbreviation)
        else { return nil }
        if let symbol = entry.linkageName.flatMap({ text($0, unit.unit) }) { return symbol }
        if let symbol = entry.origin.flatMap({ name(of: $0, unit, depth: depth + 1) }) {
            return symbol
        }
        guard let name = entry.name.flatMap({ text($0, unit.unit) }) else { return nil }
        return name == "operator()" ? lambdaName(at: Int(offset), unit, depth: depth) : name
    }

    /// A name for gcc's lambdas, which have no symbols: built from the enclosing function, in the demangler's spelling.
    private mutating func lambdaName(at offset: Int, _ unit: WholeUnit, depth: Int) -> String {
        var cursor = ByteCursor(unit.bytes, at: unit.header.entries)
        // For each entry around the cursor its position, if it is a function.
        var around: [Int?] = []
        while !cursor.isAtEnd, cursor.position < offset, mayContinue() {
            let start = cursor.position
            let code = cursor.uleb()
            guard code != 0 else {
                _ = around.popLast()
                continue
            }
            guard let abbreviation = unit.abbreviations[code], cursor.skipEntry(abbreviation) else {
                break
            }
            if abbreviation.hasChildren {
                around.append(abbreviation.tag == 0x2e ? start : nil)  // subprogram
            }
        }
        guard cursor.position == offset, let function = around.last(where: { $0 != nil }),
            let symbol = name(of: .unitReference(UInt64(function!)), unit, depth: depth + 1)
        else { return "operator()" }
        return readableName(symbol) + "::{lambda}::operator()"
    }

    // MARK: - Units

    /// The header and first entry of the unit at `start`; nil at the end, or if the rest cannot be parsed.
    private mutating func unit(at start: UInt64) -> Unit? {
        guard let bytes = sections.beginning(ofUnitAt: start),
            let header = DebugUnit(bytes, at: start, sectionSize: sections.infoSize)
        else { return nil }
        var unit = Unit(header: header, root: DebugEntry())
        guard header.isReadable else { return unit }
        var cursor = ByteCursor(bytes, at: header.entries, end: header.size)
        let code = cursor.uleb()
        let table = AbbreviationTable(
            sections.section(".debug_abbrev"), at: header.abbreviations, upTo: code)
        if let abbreviation = table[code], abbreviation.tag == 0x11,  // compile_unit
            let root = cursor.entry(abbreviation)
        {
            unit.root = root
        }
        return unit
    }

    private mutating func whole(_ unit: Unit) -> WholeUnit? {
        guard let bytes = sections.bytes(of: unit.header) else { return nil }
        let abbreviations = AbbreviationTable(
            sections.section(".debug_abbrev"), at: unit.header.abbreviations)
        return WholeUnit(unit: unit, bytes: bytes, abbreviations: abbreviations)
    }

    /// The unit that contains an offset in the section. The last one is cached, because references come in runs.
    private mutating func unit(holding offset: UInt64) -> WholeUnit? {
        if let lastReferenced, lastReferenced.holds(offset) { return lastReferenced }
        var start: UInt64 = 0
        while let unit = unit(at: start) {
            let end = start + UInt64(unit.header.size)
            if offset < end {
                lastReferenced = unit.header.isReadable ? whole(unit) : nil
                return lastReferenced
            }
            start = end
        }
        return nil
    }

    private mutating func text(_ value: AttributeValue, _ unit: Unit) -> String? {
        switch value {
        case .text(let text): return text
        case .stringOffset(let section, let offset): return sections.string(in: section, at: offset)
        case .stringIndex(let index):
            guard
                let offset = offset(
                    at: index, from: unit.root.stringOffsetsBase ?? 8, size: 4,
                    in: ".debug_str_offsets")
            else { return nil }
            return sections.string(in: ".debug_str", at: offset)
        default: return nil
        }
    }
}

/// A unit with its first entry, which refers to its strings, addresses and ranges.
struct Unit {
    let header: DebugUnit
    var root: DebugEntry
}

private struct WholeUnit {
    let unit: Unit
    let bytes: [UInt8]
    let abbreviations: AbbreviationTable
    var header: DebugUnit { unit.header }

    func holds(_ offset: UInt64) -> Bool {
        offset >= header.start && offset - header.start < UInt64(header.size)
    }
}
