// Compilation units and the attributes of their entries. Only the attributes for names, call sites and address ranges
// are read; others are skipped by their form.

/// The encoding of an attribute. **Source:** DWARF 5, section 7.5.6; GNU extensions from GCC's dwarf2.def.
struct AttributeSpecification {
    let name: UInt64
    let form: UInt64
    let constant: Int64
}

struct Abbreviation {
    let tag: UInt64
    let hasChildren: Bool
    let attributes: [AttributeSpecification]
}

enum AttributeValue {
    case number(UInt64)
    case addressIndex(UInt64)
    case rangesIndex(UInt64)
    case stringIndex(UInt64)
    case text(String)
    case stringOffset(section: String, UInt64)
    /// Offset from the start of the unit.
    case unitReference(UInt64)
    /// Offset from the start of the section.
    case sectionReference(UInt64)
    case skipped
}

/// The attributes of one entry that are used here.
struct DebugEntry {
    var name, linkageName, compilationDirectory: AttributeValue?
    var lowAddress, highAddress, ranges: AttributeValue?
    /// Whether `highAddress` is relative to `lowAddress`.
    var highIsLength = false
    var origin: AttributeValue?
    var callFile: UInt64 = 0
    var callLine: UInt64 = 0
    var lineProgram: UInt64?
    var stringOffsetsBase, addressBase, rangeListsBase: UInt64?

    mutating func set(_ name: UInt64, _ value: AttributeValue, form: UInt64) {
        switch name {
        case 0x03: self.name = value
        case 0x6e, 0x2007: linkageName = value
        case 0x1b: compilationDirectory = value
        case 0x11: lowAddress = value
        case 0x12:
            highAddress = value
            highIsLength = form != 0x01 && form != 0x1b && !(0x29...0x2c).contains(form)
        case 0x55: ranges = value
        case 0x31, 0x47: origin = origin ?? value
        case 0x58: callFile = value.number ?? 0
        case 0x59: callLine = value.number ?? 0
        case 0x10: lineProgram = value.number
        case 0x72: stringOffsetsBase = value.number
        case 0x73: addressBase = value.number
        case 0x74: rangeListsBase = value.number
        default: break
        }
    }
}

extension AttributeValue {
    var number: UInt64? { if case .number(let value) = self { value } else { nil } }
}

/// The header of one unit in `.debug_info`.
struct DebugUnit {
    /// Its offset in the section.
    let start: UInt64
    /// Its size, header included.
    let size: Int
    /// The offset of its first entry from its start.
    let entries: Int
    let version: UInt16
    let abbreviations: UInt64
    /// Whether it is a compilation unit of a supported kind.
    let isReadable: Bool

    /// Nil if the length is implausible: the units after it cannot be found then.
    init?(_ bytes: [UInt8], at start: UInt64, sectionSize: UInt64) {
        var header = ByteCursor(bytes)
        let length = UInt64(header.uint32())
        // 0xffffffff introduces the 64-bit format, which no common linker writes for files below 4 GB.
        guard length > 7, length <= sectionSize - start, length + 4 <= sectionSize - start else {
            return nil
        }
        self.start = start
        size = Int(length) + 4
        version = header.uint16()
        // Only full compilation units contain code; version 5 has other kinds.
        let kind = version >= 5 ? header.uint8() : 1
        var addressSize = version >= 5 ? header.uint8() : 0
        abbreviations = header.unsigned(4)
        if version < 5 { addressSize = header.uint8() }
        entries = header.position
        isReadable =
            (2...5).contains(version) && kind == 1 && addressSize == 8 && !header.isExhausted
    }
}

/// The abbreviations of one unit, by code.
struct AbbreviationTable {
    private var byCode: [UInt64: Abbreviation] = [:]
    /// How many bytes were read for it.
    private(set) var size = 0

    subscript(code: UInt64) -> Abbreviation? { byCode[code] }

    /// - Parameter code: The last code needed: the first entry of a unit needs only one.
    init(_ section: [UInt8], at offset: UInt64, upTo code: UInt64 = .max) {
        guard offset < UInt64(section.count) else { return }
        var cursor = ByteCursor(section, at: Int(offset))
        defer { size = cursor.position - Int(offset) }
        while !cursor.isAtEnd {
            let number = cursor.uleb()
            guard number != 0 else { return }
            let tag = cursor.uleb()
            let hasChildren = cursor.uint8() != 0
            var attributes: [AttributeSpecification] = []
            while !cursor.isAtEnd {
                let (name, form) = (cursor.uleb(), cursor.uleb())
                let constant = form == 0x21 ? cursor.sleb() : 0
                if name == 0, form == 0 { break }
                attributes.append(
                    AttributeSpecification(name: name, form: form, constant: constant))
            }
            byCode[number] = Abbreviation(
                tag: tag, hasChildren: hasChildren, attributes: attributes)
            if number == code { return }
        }
    }
}

extension ByteCursor {
    /// Reads the entry's used attributes; nil for an unknown form, after which the rest of the unit is lost.
    mutating func entry(_ abbreviation: Abbreviation) -> DebugEntry? {
        var entry = DebugEntry()
        for attribute in abbreviation.attributes {
            guard let value = value(attribute.form, constant: attribute.constant) else {
                return nil
            }
            entry.set(attribute.name, value, form: attribute.form)
        }
        return isExhausted ? nil : entry
    }

    /// Skips an entry; false for an unknown form.
    mutating func skipEntry(_ abbreviation: Abbreviation) -> Bool {
        for attribute in abbreviation.attributes {
            guard value(attribute.form, constant: attribute.constant, skipsText: true) != nil else {
                return false
            }
        }
        return !isExhausted
    }

    private mutating func value(
        _ form: UInt64, constant: Int64, skipsText: Bool = false
    ) -> AttributeValue? {
        switch form {
        case 0x01: return .number(unsigned(8))  // addr
        case 0x0b, 0x0c: return .number(unsigned(1))  // data1, flag
        case 0x05: return .number(unsigned(2))
        case 0x06, 0x17: return .number(unsigned(4))  // data4, sec_offset
        case 0x07: return .number(unsigned(8))
        case 0x0d: return .number(UInt64(bitPattern: sleb()))
        case 0x0f: return .number(uleb())
        case 0x19: return .number(1)  // flag_present
        case 0x21: return .number(UInt64(bitPattern: constant))
        case 0x08:  // string
            guard skipsText else { return .text(string()) }
            while !isAtEnd, uint8() != 0 {}
            return .skipped
        case 0x0e: return .stringOffset(section: ".debug_str", unsigned(4))
        case 0x1f: return .stringOffset(section: ".debug_line_str", unsigned(4))
        case 0x1a: return .stringIndex(uleb())
        case 0x25...0x28: return .stringIndex(unsigned(Int(form) - 0x24))
        case 0x1b: return .addressIndex(uleb())
        case 0x29...0x2c: return .addressIndex(unsigned(Int(form) - 0x28))
        case 0x23: return .rangesIndex(uleb())
        case 0x11: return .unitReference(unsigned(1))
        case 0x12: return .unitReference(unsigned(2))
        case 0x13: return .unitReference(unsigned(4))
        case 0x14: return .unitReference(unsigned(8))
        case 0x15: return .unitReference(uleb())
        case 0x10: return .sectionReference(unsigned(4))
        case 0x03: skip(Int(uint16()))  // block2
        case 0x04: skip(Int(uint32()))  // block4
        case 0x09, 0x18: skip(Int(clamping: uleb()))  // block, exprloc
        case 0x0a: skip(Int(uint8()))  // block1
        case 0x1e: skip(16)  // data16
        case 0x20, 0x24: skip(8)  // ref_sig8, ref_sup8
        case 0x1c, 0x1d, 0x1f20, 0x1f21: skip(4)  // references into a supplementary file
        case 0x22: _ = uleb()  // loclistx
        default: return nil  // indirect, and forms that are not in DWARF 5
        }
        return .skipped
    }
}
