// The address ranges of an entry: one range, or a list in one of two formats.

extension DebugInformation {
    mutating func ranges(of entry: DebugEntry, _ unit: Unit) -> [Range<UInt64>] {
        if let ranges = entry.ranges {
            let base = unit.root.lowAddress.flatMap { address($0, unit) } ?? 0
            return unit.header.version >= 5
                ? rangeList(ranges, base: base, unit) : oldRangeList(ranges, base: base)
        }
        guard let low = entry.lowAddress.flatMap({ address($0, unit) }), low > 0,
            let highValue = entry.highAddress, let high = address(highValue, unit)
        else { return [] }
        let (end, overflow) = entry.highIsLength ? low.addingReportingOverflow(high) : (high, false)
        return !overflow && end > low ? [low..<end] : []
    }

    /// **Source:** DWARF 4, section 2.17.3.
    private mutating func oldRangeList(_ value: AttributeValue, base: UInt64) -> [Range<UInt64>] {
        guard let offset = value.number else { return [] }
        var base = base
        var cursor = ByteCursor(sections.section(".debug_ranges"), at: Int(clamping: offset))
        let start = cursor.position
        defer { countRead(cursor.position - start) }
        var ranges: [Range<UInt64>] = []
        while !cursor.isAtEnd {
            let (low, high) = (cursor.uint64(), cursor.uint64())
            if low == 0, high == 0 { break }
            if low == .max { base = high } else { ranges.add(base &+ low, base &+ high) }
        }
        return ranges
    }

    /// **Source:** DWARF 5, section 7.25.
    private mutating func rangeList(
        _ value: AttributeValue, base: UInt64, _ unit: Unit
    ) -> [Range<UInt64>] {
        let offset: UInt64
        switch value {
        case .number(let number): offset = number
        case .rangesIndex(let index):
            let table = unit.root.rangeListsBase ?? 12
            guard let distance = self.offset(at: index, from: table, size: 4, in: ".debug_rnglists")
            else { return [] }
            offset = table &+ distance
        default: return []
        }
        var base = base
        var cursor = ByteCursor(sections.section(".debug_rnglists"), at: Int(clamping: offset))
        let start = cursor.position
        defer { countRead(cursor.position - start) }
        var ranges: [Range<UInt64>] = []
        while !cursor.isAtEnd {
            switch cursor.uint8() {
            case 0: return ranges
            case 1: base = address(.addressIndex(cursor.uleb()), unit) ?? 0
            case 2:
                let low = address(.addressIndex(cursor.uleb()), unit) ?? 0
                ranges.add(low, address(.addressIndex(cursor.uleb()), unit) ?? 0)
            case 3:
                let low = address(.addressIndex(cursor.uleb()), unit) ?? 0
                ranges.add(low, low &+ cursor.uleb())
            case 4: ranges.add(base &+ cursor.uleb(), base &+ cursor.uleb())
            case 5: base = cursor.uint64()
            case 6: ranges.add(cursor.uint64(), cursor.uint64())
            case 7:
                let low = cursor.uint64()
                ranges.add(low, low &+ cursor.uleb())
            default: return ranges
            }
        }
        return ranges
    }

    private mutating func address(_ value: AttributeValue, _ unit: Unit) -> UInt64? {
        switch value {
        case .number(let address): address
        case .addressIndex(let index):
            offset(at: index, from: unit.root.addressBase ?? 8, size: 8, in: ".debug_addr")
        default: nil
        }
    }

    mutating func offset(
        at index: UInt64, from base: UInt64, size: UInt64, in section: String
    ) -> UInt64? {
        let (distance, overflow) = index.multipliedReportingOverflow(by: size)
        guard !overflow, base < 1 << 40, distance < 1 << 40 else { return nil }
        var cursor = ByteCursor(sections.section(section), at: Int(base + distance))
        let value = cursor.unsigned(Int(size))
        return cursor.isExhausted ? nil : value
    }
}

extension [Range<UInt64>] {
    fileprivate mutating func add(_ low: UInt64, _ high: UInt64) {
        // Linkers set the ranges of removed functions to 0 or 1.
        if low > 1, low < high { append(low..<high) }
    }
}
