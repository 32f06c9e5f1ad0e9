// Runs a unit's line number program, and keeps only the rows of the wanted addresses.

/// **Source:** DWARF 5, section 6.2 "Line Number Information".
struct LineProgram {
    struct Row {
        var file: UInt64
        /// Nil for code without a line.
        var line: Int?
    }

    /// With its tables of files.
    let size: Int
    private let program: ByteCursor
    private let version: UInt16
    private let minimumLength: UInt64
    private let lineBase: Int64
    private let lineRange: Int64
    private let opcodeBase: UInt8
    private let operandCounts: [UInt8]
    private let directories: [Text]
    private let files: [(name: Text, directory: UInt64)]

    /// A name of the tables. Those in other sections are read when they are used: a hostile table refers to one long
    /// string from each of its entries.
    private enum Text {
        case here(String)
        case offset(section: String, UInt64)
    }

    init?(_ sections: inout DebugSections, at offset: UInt64, directory: String?) {
        var cursor = ByteCursor(sections.section(".debug_line"), at: Int(clamping: offset))
        let length = Int(cursor.uint32())
        guard length > 8, length <= cursor.end - cursor.position else { return nil }
        let end = cursor.position + length
        size = length
        version = cursor.uint16()
        guard (2...5).contains(version) else { return nil }
        if version >= 5 {
            guard cursor.uint8() == 8 else { return nil }
            cursor.skip(1)
        }
        let headerLength = Int(cursor.uint32())
        guard headerLength <= end - cursor.position else { return nil }
        program = ByteCursor(cursor.bytes, at: cursor.position + headerLength, end: end)
        var header = ByteCursor(
            cursor.bytes, at: cursor.position, end: cursor.position + headerLength)
        minimumLength = UInt64(header.uint8())
        if version >= 4 { header.skip(1) }
        header.skip(1)
        lineBase = Int64(Int8(bitPattern: header.uint8()))
        lineRange = Int64(header.uint8())
        opcodeBase = header.uint8()
        guard lineRange > 0, opcodeBase > 0 else { return nil }
        operandCounts = (1..<max(1, opcodeBase)).map { _ in header.uint8() }
        if version >= 5 {
            directories = Self.entries(&header).map(\.name)
            files = Self.entries(&header)
        } else {
            // Directory 0 is the unit's compilation directory.
            var directories = [Text.here(directory ?? "")]
            while !header.isAtEnd {
                let name = header.string()
                if name.isEmpty { break }
                directories.append(.here(name))
            }
            // File numbers start at 1.
            var files = [(name: Text.here(""), directory: UInt64(0))]
            while !header.isAtEnd {
                let name = header.string()
                if name.isEmpty { break }
                files.append((.here(name), header.uleb()))
                _ = (header.uleb(), header.uleb())
            }
            self.directories = directories
            self.files = files
        }
    }

    /// A version 5 table of directories or files.
    private static func entries(
        _ header: inout ByteCursor
    ) -> [(name: Text, directory: UInt64)] {
        let formats = (0..<header.uint8()).map { _ in (content: header.uleb(), form: header.uleb())
        }
        let count = header.uleb()
        var entries: [(name: Text, directory: UInt64)] = []
        while !formats.isEmpty, entries.count < count, !header.isAtEnd {
            var entry = (name: Text.here(""), directory: UInt64(0))
            for format in formats {
                switch (format.content, format.form) {
                case (1, 0x08): entry.name = .here(header.string())
                case (1, 0x0e):
                    entry.name = .offset(section: ".debug_str", header.unsigned(4))
                case (1, 0x1f):
                    entry.name = .offset(section: ".debug_line_str", header.unsigned(4))
                case (2, 0x0b): entry.directory = header.unsigned(1)
                case (2, 0x05): entry.directory = header.unsigned(2)
                case (2, 0x0f): entry.directory = header.uleb()
                case (_, 0x0b): header.skip(1)
                case (_, 0x05): header.skip(2)
                case (_, 0x06), (_, 0x0e), (_, 0x1f): header.skip(4)
                case (_, 0x07): header.skip(8)
                case (_, 0x0f): _ = header.uleb()
                case (_, 0x08): _ = header.string()
                case (_, 0x1e): header.skip(16)
                default: return entries
                }
            }
            entries.append(entry)
        }
        return entries
    }

    /// A file's path; nil for names invented by the compiler.
    func path(of file: UInt64, _ sections: DebugSections) -> String? {
        guard file < UInt64(files.count) else { return nil }
        func text(_ text: Text) -> String {
            switch text {
            case .here(let name): name
            case .offset(let section, let offset): sections.string(in: section, at: offset) ?? ""
            }
        }
        let directory = files[Int(file)].directory
        let name = text(files[Int(file)].name)
        guard !name.isEmpty, !name.hasPrefix("<") else { return nil }
        guard !name.hasPrefix("/"), directory < UInt64(directories.count) else { return name }
        let path = Self.joined(text(directories[Int(directory)]), name)
        return path.hasPrefix("/") ? path : Self.joined(text(directories[0]), path)
    }

    private static func joined(_ directory: String, _ name: String) -> String {
        directory.isEmpty
            ? name : directory.hasSuffix("/") ? directory + name : directory + "/" + name
    }

    /// The rows that contain these addresses.
    func rows(at addresses: [UInt64]) -> [UInt64: Row] {
        let wanted = addresses.sorted()
        var found: [UInt64: Row] = [:]
        var cursor = program
        var state = State()
        var previous: State?

        func emit(endsSequence: Bool) {
            if let previous, previous.address < state.address {
                var low = 0
                var high = wanted.count
                while low < high {
                    let middle = (low + high) / 2
                    if wanted[middle] < previous.address { low = middle + 1 } else { high = middle }
                }
                while low < wanted.count, wanted[low] < state.address {
                    found[wanted[low]] = Row(
                        file: previous.file,
                        line: previous.line > 0 ? Int(clamping: previous.line) : nil)
                    low += 1
                }
            }
            previous = endsSequence ? nil : state
            if endsSequence { state = State() }
        }

        while !cursor.isAtEnd, found.count < wanted.count {
            let opcode = cursor.uint8()
            if opcode >= opcodeBase {
                let adjusted = Int64(opcode - opcodeBase)
                state.address &+= UInt64(adjusted / lineRange) &* minimumLength
                state.line &+= lineBase + adjusted % lineRange
                emit(endsSequence: false)
                continue
            }
            switch opcode {
            case 0:
                let length = Int(clamping: cursor.uleb())
                guard length > 0, length <= cursor.end - cursor.position else { return found }
                var operands = ByteCursor(
                    cursor.bytes, at: cursor.position, end: cursor.position + length)
                cursor.skip(length)
                switch operands.uint8() {
                case 1: emit(endsSequence: true)
                case 2: state.address = operands.unsigned(min(length - 1, 8))
                default: break
                }
            case 1: emit(endsSequence: false)
            case 2: state.address &+= cursor.uleb() &* minimumLength
            case 3: state.line &+= cursor.sleb()
            case 4: state.file = cursor.uleb()
            case 8: state.address &+= UInt64(Int64(255 - opcodeBase) / lineRange) &* minimumLength
            case 9: state.address &+= UInt64(cursor.uint16())
            default:
                for _ in 0..<operandCounts[Int(opcode) - 1] { _ = cursor.uleb() }
            }
        }
        return found
    }

    private struct State {
        var address: UInt64 = 0
        var file: UInt64 = 1
        var line: Int64 = 1
    }
}
