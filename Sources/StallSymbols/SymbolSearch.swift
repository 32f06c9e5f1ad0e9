// Finds the functions that contain a set of addresses, in one pass over a symbol table.

/// One entry of a symbol table.
struct Symbol {
    static let size = 24

    let name: UInt32
    let information: UInt8
    let section: UInt16
    let value: UInt64
    let extent: UInt64

    init(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        name = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        information = bytes[offset + 4]
        section = UInt16(
            littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 6, as: UInt16.self))
        value = UInt64(
            littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
        extent = UInt64(
            littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 16, as: UInt64.self))
    }

    var isLocal: Bool { information >> 4 == 0 }
    var isWeak: Bool { information >> 4 == 2 }
    /// A function, or an indirect one that is resolved at load time.
    var isFunction: Bool { information & 15 == 2 || isIndirect }
    /// Its code chooses the function.
    var isIndirect: Bool { information & 15 == 10 }
    var isDefined: Bool { section != 0 }
}

/// The addresses without a symbol so far.
struct SymbolSearch {
    private let addresses: [UInt64]
    /// For each address, the aliases of the innermost function found so far that contains it.
    private var holders: [[Symbol]]
    /// For each address, the last function that begins after the previous address.
    private var nearest: [Symbol?]
    /// Tables without any were made small: by `strip --discard-all`, or by the linker.
    private(set) var hasLocalFunctions = false

    init(addresses: [UInt64]) {
        self.addresses = Array(Set(addresses)).sorted()
        holders = Array(repeating: [], count: self.addresses.count)
        nearest = Array(repeating: nil, count: self.addresses.count)
    }

    mutating func consider(_ symbol: Symbol) {
        guard symbol.isFunction, symbol.isDefined else { return }
        if symbol.isLocal { hasLocalFunctions = true }
        var index = addresses.sortedIndex(notBelow: symbol.value)
        guard index < addresses.count else { return }
        if nearest[index].map({ $0.value < symbol.value }) ?? true { nearest[index] = symbol }
        while index < addresses.count, addresses[index] - symbol.value < symbol.extent {
            let value = holders[index].first?.value
            if value == nil || value! < symbol.value {
                holders[index] = [symbol]
            } else if value! == symbol.value, holders[index].count < 16 {
                holders[index].append(symbol)
            }
            index += 1
        }
    }

    /// The candidates of each address. A function without a size extends to the next one in its section.
    func answers(sections: [ELFFile.Section]) -> [(address: UInt64, candidates: [Symbol])] {
        var last: Symbol?
        return addresses.indices.compactMap { index in
            if let symbol = nearest[index] { last = symbol }
            if !holders[index].isEmpty { return (addresses[index], holders[index]) }
            guard let last, last.extent == 0, sections.indices.contains(Int(last.section)),
                sections[Int(last.section)].holds(addresses[index])
            else { return nil }
            return (addresses[index], [last])
        }
    }
}

extension [UInt64] {
    /// The indexes of the numbers in these ranges, ascending.
    func indices(in ranges: [Range<UInt64>]) -> [Int] {
        var found: [Int] = []
        for range in ranges {
            var index = sortedIndex(notBelow: range.lowerBound)
            while index < count, self[index] < range.upperBound {
                found.append(index)
                index += 1
            }
        }
        // Ranges may overlap, and need not be in order.
        return found.count < 2 ? found : Set(found).sorted()
    }

    /// The first index of numbers in ascending order at which one is not below `value`.
    func sortedIndex(notBelow value: UInt64) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < value { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
