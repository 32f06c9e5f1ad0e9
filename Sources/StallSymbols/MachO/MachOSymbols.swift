// The symbol table. Symbols have no sizes: a function extends to the next one.

/// One entry. **Source:** Apple, <mach-o/nlist.h>, `nlist_64`.
struct MachOSymbol {
    static let size = 16

    let name: UInt32
    let section: UInt8
    let value: UInt64
    private let type: UInt8
    private let description: UInt16

    init(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        name = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        type = bytes[offset + 4]
        section = bytes[offset + 5]
        description = UInt16(
            littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 6, as: UInt16.self))
        value = UInt64(
            littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
    }

    /// In a section of this file, and not one of the debugger's entries (`N_STAB`).
    var isDefined: Bool { type & 0xe0 == 0 && type & 0x0e == 0x0e && section > 0 }
    var isLocal: Bool { type & 1 == 0 }
    var isWeak: Bool { description & 0x80 != 0 }
}

extension MachOCommands.SymbolTable {
    func forEachSymbol(in source: any ByteSource, _ body: (MachOSymbol) -> Void) {
        let entry = UInt64(MachOSymbol.size)
        var first: UInt64 = 0
        while first < count {
            let part = min(count - first, 4096)
            guard let bytes = source.bytes(at: offset + first * entry, count: part * entry) else {
                return
            }
            bytes.withUnsafeBytes { bytes in
                for index in 0..<Int(part) {
                    body(MachOSymbol(bytes, at: index * MachOSymbol.size))
                }
            }
            first += part
        }
    }

    /// Without the underscore that compilers put before each name of C, C++ and Swift.
    func name(of symbol: MachOSymbol, in source: any ByteSource) -> String? {
        let text = source.string(
            at: UInt64(symbol.name), inTableAt: stringsOffset, size: stringsSize)
        guard let text, text.hasPrefix("_") else { return text }
        return text.count > 1 ? String(text.dropFirst()) : nil
    }
}

/// Finds the functions that contain a set of addresses, in one pass over the table.
struct MachOSymbolSearch {
    let addresses: [UInt64]
    private let sections: [MachOCommands.Section]
    /// For each address, the names of the last function that begins after the previous address.
    private var nearest: [[MachOSymbol]]
    /// Tables without any were made small by `strip`.
    private(set) var hasLocalFunctions = false

    init(addresses: [UInt64], sections: [MachOCommands.Section]) {
        self.addresses = Array(Set(addresses)).sorted()
        self.sections = sections
        nearest = Array(repeating: [], count: self.addresses.count)
    }

    mutating func consider(_ symbol: MachOSymbol) {
        guard symbol.isDefined, let section = section(of: symbol), section.isCode,
            section.holds(symbol.value)
        else { return }
        if symbol.isLocal { hasLocalFunctions = true }
        let index = addresses.sortedIndex(notBelow: symbol.value)
        guard index < addresses.count else { return }
        let value = nearest[index].first?.value
        if value == nil || value! < symbol.value {
            nearest[index] = [symbol]
        } else if value! == symbol.value, nearest[index].count < 16 {
            nearest[index].append(symbol)
        }
    }

    /// The candidates of each address, at least one.
    ///
    /// - Parameter starts: For each address where a function begins last. A symbol before it is of another function.
    func answers(
        starts: [UInt64: UInt64]
    ) -> [(address: UInt64, candidates: [MachOSymbol])] {
        var last: [MachOSymbol] = []
        return addresses.indices.compactMap { index in
            if !nearest[index].isEmpty { last = nearest[index] }
            let address = addresses[index]
            guard let symbol = last.first, section(of: symbol)?.holds(address) == true,
                symbol.value >= starts[address] ?? 0
            else { return nil }
            return (address, last)
        }
    }

    private func section(of symbol: MachOSymbol) -> MachOCommands.Section? {
        let index = Int(symbol.section) - 1
        return sections.indices.contains(index) ? sections[index] : nil
    }
}
