// Units, their abbreviations and their strings, found by offset and kept for as long as a search refers to them.

extension DebugInformation {
    /// The header and first entry of the unit at `start`; nil at the end, or if the rest cannot be parsed.
    mutating func unit(at start: UInt64) -> Unit? {
        guard let bytes = sections.beginning(ofUnitAt: start),
            let header = DebugUnit(bytes, at: start, sectionSize: sections.infoSize)
        else { return nil }
        var unit = Unit(header: header, root: DebugEntry())
        guard header.isReadable else { return unit }
        var cursor = ByteCursor(bytes, at: header.entries, end: header.size)
        let code = cursor.uleb()
        let table = table(at: header.abbreviations, upTo: code)
        if let abbreviation = table[code], abbreviation.tag == 0x11,  // compile_unit
            let root = cursor.entry(abbreviation)
        {
            unit.root = root
        }
        return unit
    }

    mutating func whole(_ unit: Unit) -> WholeUnit? {
        guard let bytes = sections.bytes(of: unit.header) else { return nil }
        countRead(bytes.count)
        return WholeUnit(
            unit: unit, bytes: bytes, abbreviations: table(at: unit.header.abbreviations))
    }

    private mutating func table(at offset: UInt64, upTo code: UInt64? = nil) -> AbbreviationTable {
        if let abbreviations, abbreviations.offset == offset { return abbreviations.table }
        let table = AbbreviationTable(
            sections.section(".debug_abbrev"), at: offset, upTo: code ?? .max)
        countRead(table.size)
        if code == nil { abbreviations = (offset, table) }
        return table
    }

    /// The unit that contains an offset in the section.
    mutating func unit(holding offset: UInt64) -> WholeUnit? {
        if let unit = references.units.first(where: { $0.holds(offset) }) { return unit }
        if references.starts == nil { references.starts = starts() }
        let starts = references.starts ?? []
        let index = starts.sortedIndex(notBelow: offset + 1)
        guard index > 0, !isCut, let unit = unit(at: starts[index - 1]), unit.header.isReadable,
            let whole = whole(unit), whole.holds(offset)
        else { return nil }
        references.add(whole)
        return whole
    }

    /// Where each unit begins.
    private mutating func starts() -> [UInt64] {
        var starts: [UInt64] = []
        var start: UInt64 = 0
        while let bytes = sections.beginning(ofUnitAt: start),
            let header = DebugUnit(bytes, at: start, sectionSize: sections.infoSize)
        {
            starts.append(start)
            start += UInt64(header.size)
        }
        return starts
    }

    mutating func text(_ value: AttributeValue, _ unit: Unit) -> String? {
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

/// The units of entries that other units refer to: a dSYM has a type's members once, in the first unit with it.
struct ReferencedUnits {
    /// Where each unit of the file begins; nil until it is needed.
    var starts: [UInt64]?
    private(set) var units: [WholeUnit] = []

    private static let sizeLimit = 16 << 20

    /// Small units stay, up to eight of them, because references alternate.
    mutating func add(_ unit: WholeUnit) {
        units.insert(unit, at: 0)
        while units.count > 8
            || units.count > 1 && units.reduce(0, { $0 + $1.bytes.count }) > Self.sizeLimit
        {
            units.removeLast()
        }
    }
}

struct WholeUnit {
    let unit: Unit
    let bytes: [UInt8]
    let abbreviations: AbbreviationTable
    var header: DebugUnit { unit.header }

    func holds(_ offset: UInt64) -> Bool {
        offset >= header.start && offset - header.start < UInt64(header.size)
    }
}
