// The source lines of addresses and the calls inlined there: DWARF 2 to 5, as written by swiftc, clang and gcc.
// docs/decisions explains why this uses no library. One pass over the units that contain the addresses finds all of
// them; other units are skipped by their headers.

/// The calls and lines at one address, innermost first. All functions but the last were inlined into the next one.
struct SourceContext {
    struct Position {
        /// The inlined function's symbol or name. The last one's is nil if the symbol table has sizes, and names it.
        var function: String?
        var file: String?
        var line: Int?
    }
    var positions: [Position]
    /// Where the function of the last position begins, if it has a name here.
    var functionStart: UInt64?
}

struct DebugInformation {
    var sections: DebugSections
    private let isOverBudget: () -> Bool
    /// The budget was used up before the end: absent entries may exist.
    private(set) var isCut = false
    private let findsFunctions: Bool
    var references = ReferencedUnits()
    /// The last table, since all units of a file may share one.
    var abbreviations: (offset: UInt64, table: AbbreviationTable)?
    /// How many bytes may still be read: units of hostile files share tables, so that reading them is quadratic.
    private var bytesLeft: UInt64

    /// Nil if the file has no debug information. Units of more than `limit` bytes are skipped.
    ///
    /// - Parameter readLimit: How many bytes are read, those of tables that units share with each unit; by default many
    ///   times those of any valid file.
    init?(
        _ file: any ObjectFile, limit: UInt64, readLimit: UInt64? = nil,
        isOverBudget: @escaping () -> Bool
    ) {
        guard let sections = DebugSections(file, limit: limit) else { return nil }
        self.sections = sections
        self.isOverBudget = isOverBudget
        findsFunctions = file.hasUnboundedSymbols
        bytesLeft = readLimit ?? (256 << 20 + sections.infoSize * 64)
    }

    /// The source context of each address. Addresses that exceed the time budget are absent.
    mutating func contexts(at addresses: [UInt64]) -> [UInt64: SourceContext] {
        let wanted = Array(Set(addresses)).sorted()
        var contexts: [UInt64: SourceContext] = [:]
        var start: UInt64 = 0
        while contexts.count < wanted.count, mayContinue(), let unit = unit(at: start) {
            start += UInt64(unit.header.size)
            let here = wanted.indices(in: ranges(of: unit.root, unit)).map { wanted[$0] }
                .filter { contexts[$0] == nil }
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

    mutating func countRead(_ bytes: Int) {
        let bytes = UInt64(bytes)
        if bytes > bytesLeft { isCut = true }
        bytesLeft -= min(bytes, bytesLeft)
    }

    private mutating func contexts(
        at addresses: [UInt64], in unit: Unit
    ) -> [UInt64: SourceContext] {
        guard let around = functions(around: addresses, in: unit) else { return [:] }
        let directory = unit.root.compilationDirectory.flatMap { text($0, unit) }
        let lines = unit.root.lineProgram.flatMap {
            LineProgram(&sections, at: $0, directory: directory)
        }
        let rows = lines?.rows(at: addresses) ?? [:]
        countRead(lines?.size ?? 0)
        var contexts: [UInt64: SourceContext] = [:]
        func path(of file: UInt64) -> String? {
            let path = lines?.path(of: file, sections)
            countRead(path?.utf8.count ?? 0)
            return path
        }
        for address in addresses where !isCut {
            var positions: [SourceContext.Position] = []
            var file = rows[address].flatMap { path(of: $0.file) }
            var line = rows[address]?.line
            // The innermost function is at the address; each outer one is at its call of the inner one.
            for call in (around.calls[address] ?? []).reversed() {
                positions.append(
                    .init(function: call.function, file: line == nil ? nil : file, line: line))
                file = path(of: call.file)
                line = call.line > 0 && file != nil ? Int(clamping: call.line) : nil
            }
            let function = around.functions[address]
            positions.append(
                .init(function: function?.name, file: line == nil ? nil : file, line: line))
            contexts[address] = SourceContext(
                positions: positions, functionStart: function?.start)
        }
        return contexts
    }

    // MARK: - Inlined calls

    private struct InlinedCall {
        var function: String?
        var file: UInt64
        var line: UInt64
    }

    /// No compiler inlines as many calls into each other.
    private static let depthLimit = 256

    private struct Surroundings {
        /// The inlined calls around each address, outermost first.
        var calls: [UInt64: [InlinedCall]] = [:]
        /// The function that each address is in, where the symbol table may not have it.
        var functions: [UInt64: (name: String, start: UInt64)] = [:]
    }

    /// Nil if the unit cannot be parsed to its end.
    ///
    /// - Parameter addresses: In ascending order.
    private mutating func functions(
        around addresses: [UInt64], in unit: Unit
    ) -> Surroundings? {
        guard let unit = whole(unit) else { return nil }
        var found = Surroundings()
        var cursor = ByteCursor(unit.bytes, at: unit.header.entries)
        var count = 0
        while !cursor.isAtEnd {
            count += 1
            guard !isCut, count % 4096 != 0 || mayContinue() else { return nil }
            let start = cursor.position
            let code = cursor.uleb()
            guard code != 0 else { continue }
            guard let abbreviation = unit.abbreviations[code] else { return nil }
            let isInlined = abbreviation.tag == 0x1d  // inlined_subroutine
            guard isInlined || findsFunctions && abbreviation.tag == 0x2e else {  // subprogram
                guard cursor.skipEntry(abbreviation) else { return nil }
                continue
            }
            guard let entry = cursor.entry(abbreviation) else { return nil }
            let ranges = ranges(of: entry, unit.unit)
            let covered = addresses.indices(in: ranges).map { addresses[$0] }
            countRead(covered.count)
            guard !covered.isEmpty else { continue }
            if isInlined {
                let function = entry.origin.flatMap { name(of: $0, unit, depth: 0) }
                let call = InlinedCall(
                    function: function, file: entry.callFile, line: entry.callLine)
                for address in covered where found.calls[address]?.count ?? 0 < Self.depthLimit {
                    found.calls[address, default: []].append(call)
                }
            } else if let name = name(of: .unitReference(UInt64(start)), unit, depth: 0) {
                for address in covered {
                    let start = ranges.last { $0.contains(address) }?.lowerBound ?? address
                    found.functions[address] = (name, start)
                }
            }
        }
        return found
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
        if let symbol = entry.linkageName.flatMap({ text($0, unit.unit) }) {
            countRead(symbol.utf8.count)
            return symbol
        }
        if let symbol = entry.origin.flatMap({ name(of: $0, unit, depth: depth + 1) }) {
            return symbol
        }
        guard let name = entry.name.flatMap({ text($0, unit.unit) }) else { return nil }
        countRead(name.utf8.count)
        return name == "operator()" ? lambdaName(at: Int(offset), unit, depth: depth) : name
    }

    /// A name for gcc's lambdas, which have no symbols: built from the enclosing function, in the demangler's spelling.
    private mutating func lambdaName(at offset: Int, _ unit: WholeUnit, depth: Int) -> String {
        var cursor = ByteCursor(unit.bytes, at: unit.header.entries)
        countRead(offset)
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
}
