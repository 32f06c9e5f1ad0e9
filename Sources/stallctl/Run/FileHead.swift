// The first bytes of a program's file: ELF or a script. The file may be any, so nothing in them is used before its
// range is checked.
//
// Source: elf(5); the note of Go's linker ("Go", type 4: its build ID).

internal import Glibc

struct FileHead {
    enum Kind: Equatable {
        case binary(ProgramFile.Obstacle?)
        case script(interpreter: String, argument: String?)
        /// Without an interpreter's line: a shell runs it.
        case text
        case unknown
    }

    private let bytes: [UInt8]
    /// More than the headers and the interpreter's path of a program take.
    private static let size = 1 << 20

    init?(path: String) {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: Self.size)
        let count = bytes.withUnsafeMutableBytes { pread(file, $0.baseAddress, $0.count, 0) }
        guard count > 0 else { return nil }
        self.init(Array(bytes[..<count]))
    }

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var kind: Kind {
        if bytes.starts(with: [0x7F, 0x45, 0x4C, 0x46]) { return .binary(obstacle) }
        if bytes.starts(with: "#!".utf8) { return script }
        return bytes.prefix(80).contains(0) ? .unknown : .text
    }

    private var script: Kind {
        let line = String(decoding: bytes.dropFirst(2).prefix { $0 != 10 }, as: UTF8.self)
        let words = line.split(
            maxSplits: 1, whereSeparator: { $0 == " " || $0 == "\t" || $0 == "\r" })
        guard let interpreter = words.first else { return .unknown }
        return .script(
            interpreter: String(interpreter), argument: words.count > 1 ? String(words[1]) : nil)
    }

    private var obstacle: ProgramFile.Obstacle? {
        #if arch(x86_64)
        let machine = 62
        #else
        let machine = 183  // aarch64
        #endif
        // 64 bits, little-endian.
        guard number(at: 4, size: 1) == 2, number(at: 5, size: 1) == 1,
            number(at: 18, size: 2) == machine
        else { return .otherMachine }
        guard let offset = number(at: 32, size: 8), let entrySize = number(at: 54, size: 2),
            let count = number(at: 56, size: 2), entrySize >= 56
        else { return .isUnreadable }
        var loader: String?
        var isGo = false
        for index in 0..<min(count, 128) {
            let (start, isTooLarge) = offset.addingReportingOverflow(index * entrySize)
            guard !isTooLarge, let type = number(at: start, size: 4),
                let from = number(at: start + 8, size: 8),
                let size = number(at: start + 32, size: 8)
            else { return .isUnreadable }
            let content = range(from, size)
            if type == 3 {
                loader =
                    content.map { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) } ?? ""
            }
            if type == 4, let content { isGo = isGo || Self.isGoNote(content) }
        }
        if isGo { return .isGo }
        if isSanitized { return .isSanitized }
        guard let loader else { return .isStatic }
        let isGlibc = loader.split(separator: "/").last?.hasPrefix("ld-linux") ?? false
        return isGlibc ? nil : .otherLibrary(loader)
    }

    /// AddressSanitizer insists on being loaded first, and the others report the agent's own accesses. Looks for the names
    /// of their libraries, or of a function that they export.
    private var isSanitized: Bool {
        ["libasan.so", "libtsan.so", "__tsan_init", "__msan_init"].contains(where: contains)
    }

    private func contains(_ text: String) -> Bool {
        let (first, count) = (CInt(text.utf8.first!), text.utf8.count)
        return bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while rest.count >= count,
                let found = memchr(rest.base.baseAddress! + rest.startIndex, first, rest.count)
            {
                let index = UnsafeRawPointer(found) - bytes.baseAddress!
                guard bytes.count - index >= count else { return false }
                if memcmp(found, text, count) == 0 { return true }
                rest = bytes[(index + 1)...]
            }
            return false
        }
    }

    /// name size 4, some size, type 4, "Go\0\0".
    private static func isGoNote(_ note: ArraySlice<UInt8>) -> Bool {
        let note = Array(note.prefix(16))
        return note.count == 16 && note[0..<4].elementsEqual([4, 0, 0, 0])
            && note[8...].elementsEqual([4, 0, 0, 0, 0x47, 0x6F, 0, 0])
    }

    /// A little-endian number; nil outside of what was read, or if it is negative as an Int.
    private func number(at offset: Int, size: Int) -> Int? {
        guard let bytes = range(offset, size) else { return nil }
        let value = bytes.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int(exactly: value)
    }

    private func range(_ offset: Int, _ count: Int) -> ArraySlice<UInt8>? {
        guard offset >= 0, count >= 0, offset <= bytes.count, count <= bytes.count - offset else {
            return nil
        }
        return bytes[offset..<offset + count]
    }
}
