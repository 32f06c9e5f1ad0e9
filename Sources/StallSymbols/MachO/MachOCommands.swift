// The load commands that symbolication needs. Every range that they give is checked here: nothing behind them begins or
// ends outside of the file.

internal import StallModel

/// **Source:** Apple, <mach-o/loader.h>, <mach-o/nlist.h>.
struct MachOCommands {
    struct Section {
        let segment, name: String
        let address, size: UInt64
        let offset: UInt32
        let flags: UInt32

        /// Whether it has instructions, all or some of it.
        var isCode: Bool { flags & 0x8000_0400 != 0 }

        func holds(_ address: UInt64) -> Bool {
            address >= self.address && address - self.address < size
        }
    }

    struct SymbolTable {
        let offset, count: UInt64
        let stringsOffset, stringsSize: UInt64
    }

    struct Segment {
        let address, size: UInt64
    }

    private(set) var uuid: BuildID?
    /// The segment with the header: the load address is its address.
    private(set) var text: Segment?
    /// Numbered from 1 on by symbols.
    private(set) var sections: [Section] = []
    private(set) var symbols: SymbolTable?
    private(set) var functionStarts: (offset: UInt64, size: UInt64)?
    private let source: any ByteSource

    private static let headerSize: UInt64 = 32
    private static let sizeLimit: UInt64 = 16 << 20
    /// Those of the largest programs are some millions.
    private static let symbolLimit: UInt64 = 1 << 25

    init(_ source: any ByteSource) throws(MachOFault) {
        self.source = source
        guard let header = Fields(source, at: 0, count: Self.headerSize),
            header.uint32(0) == 0xfeed_facf
        else {
            throw MachOFault(
                "the header at byte 0", "is none of a 64-bit Mach-O file of 32 bytes or more")
        }
        guard MachOFile.isSupported(cpu: header.uint32(4)) else {
            throw MachOFault(
                "the CPU at byte 4",
                "is 0x\(String(header.uint32(4), radix: 16)); expected arm64 or x86_64")
        }
        let (count, size) = (UInt64(header.uint32(16)), UInt64(header.uint32(20)))
        guard size <= Self.sizeLimit, let bytes = source.bytes(at: Self.headerSize, count: size)
        else {
            throw MachOFault(
                "the load commands at byte 32",
                "have \(size) bytes; expected at most \(min(Self.sizeLimit, source.size - Self.headerSize))"
            )
        }
        guard count <= size / 8 else {
            throw MachOFault(
                "the load commands at byte 32",
                "are \(count); expected at most \(size / 8) in \(size) bytes")
        }
        var at = 0
        for number in 0..<count {
            let place = "load command \(number) at byte \(at + Int(Self.headerSize))"
            guard bytes.count - at >= 8 else {
                throw MachOFault(place, "has \(bytes.count - at) bytes; expected 8 or more")
            }
            let commandSize = Int(Fields(bytes: Array(bytes[at..<at + 8])).uint32(4))
            guard commandSize >= 8, commandSize <= bytes.count - at else {
                throw MachOFault(
                    place, "has \(commandSize) bytes; expected 8 to \(bytes.count - at)")
            }
            try take(Fields(bytes: Array(bytes[at..<at + commandSize])), place)
            at += commandSize
        }
    }

    private mutating func take(_ command: Fields, _ place: String) throws(MachOFault) {
        func expect(_ size: Int) throws(MachOFault) {
            guard command.bytes.count >= size else {
                throw MachOFault(
                    place, "has \(command.bytes.count) bytes; expected \(size) or more")
            }
        }
        switch command.uint32(0) {
        case 0x19:  // LC_SEGMENT_64
            try expect(72)
            try addSegment(command, place)
        case 0x1b where uuid == nil:  // LC_UUID
            try expect(24)
            let bytes = command.bytes[8..<24]
            // Zeros stand for none, as in reports.
            if bytes.contains(where: { $0 != 0 }) { uuid = BuildID(bytes: bytes) }
        case 0x02 where symbols == nil:  // LC_SYMTAB
            try expect(24)
            let table = SymbolTable(
                offset: UInt64(command.uint32(8)), count: UInt64(command.uint32(12)),
                stringsOffset: UInt64(command.uint32(16)), stringsSize: UInt64(command.uint32(20)))
            guard table.count <= Self.symbolLimit else {
                throw MachOFault(
                    place, "has \(table.count) symbols; expected at most \(Self.symbolLimit)")
            }
            try check(table.offset, table.count * UInt64(MachOSymbol.size), "symbols", place)
            try check(table.stringsOffset, table.stringsSize, "names of symbols", place)
            symbols = table
        case 0x26 where functionStarts == nil:  // LC_FUNCTION_STARTS
            try expect(16)
            let (offset, size) = (UInt64(command.uint32(8)), UInt64(command.uint32(12)))
            try check(offset, size, "function starts", place)
            functionStarts = (offset, size)
        default: break
        }
    }

    private mutating func addSegment(_ command: Fields, _ place: String) throws(MachOFault) {
        let segment = command.name(8)
        let (address, size) = (command.uint64(24), command.uint64(32))
        guard !address.addingReportingOverflow(size).overflow else {
            throw MachOFault(
                place,
                "has a segment of \(size) bytes at address \(address); expected one below 2^64")
        }
        if segment == "__TEXT", text == nil { text = Segment(address: address, size: size) }
        let (count, room) = (Int(command.uint32(64)), (command.bytes.count - 72) / 80)
        guard count <= room else {
            throw MachOFault(place, "has \(count) sections; expected at most \(room)")
        }
        for index in 0..<count {
            let at = 72 + index * 80
            let section = Section(
                segment: command.name(at + 16), name: command.name(at),
                address: command.uint64(at + 32), size: command.uint64(at + 40),
                offset: command.uint32(at + 48), flags: command.uint32(at + 64))
            // A dSYM has the other segments' sections without their bytes.
            if section.segment == "__DWARF" {
                try check(UInt64(section.offset), section.size, "section \(section.name)", place)
            }
            sections.append(section)
        }
    }

    private func check(
        _ offset: UInt64, _ size: UInt64, _ subject: String, _ place: String
    ) throws(MachOFault) {
        guard offset <= source.size, size <= source.size - offset else {
            throw MachOFault(
                place,
                "has \(subject) of \(size) bytes from byte \(offset) on; the file has \(source.size)"
            )
        }
    }
}

extension Fields {
    /// A name of at most 16 bytes, which ends with a zero if it is shorter.
    fileprivate func name(_ at: Int) -> String {
        String(decoding: bytes[at..<at + 16].prefix { $0 != 0 }, as: UTF8.self)
    }
}
