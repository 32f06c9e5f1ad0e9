// gdb's stacks of all threads, or of one: `gdb -p PID -batch -ex 'thread apply all bt'`, with and without `full`.

internal import StallQuery

/// Reads gdb's backtraces. Variables and anything else between the frames are passed over.
struct GDBBacktrace: FormatReader {
    private(set) var lines: TextLines
    private var block = GDBBlock()

    init(_ lines: TextLines, _ options: ReadingOptions) { self.lines = lines }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        // Thousands of threads are listed before the first one's stack.
        let threads = beginning.lines.count { $0.hasPrefix("[New ") && $0.contains("LWP ") }
        if threads > 1_000, threads * 10 > beginning.lines.count * 9 { return true }
        return beginning.lines.contains { line in
            guard line.hasPrefix("#0  "),
                let frame = GDBFrameLine(Array(line.utf8).withoutColors[...])
            else { return false }
            return frame.address != nil || frame.file != nil
                || frame.library?.hasPrefix("/") == true
        }
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        while let line = lines.next() {
            if let ended = take(line.withoutColors) { return ended.report() }
        }
        let last = block
        block = GDBBlock()
        return last.isEmpty ? nil : last.report()
    }

    /// - Returns: The block that ended before this line.
    private mutating func take(_ line: [UInt8]) -> GDBBlock? {
        let number = lines.number
        if let header = GDBThreadLine(line[...]) {
            let ended = block.ends(before: header) ? endBlock() : nil
            block.take(header, line: number)
            return ended
        }
        if line.first == UInt8(ascii: "#"), line.count > 1, line[1].isDigit,
            let frame = GDBFrameLine(unwrapped(line))
        {
            let ended = block.ends(before: frame) ? endBlock() : nil
            block.take(frame, line: number)
            return ended
        }
        let ended = block.ends(before: line[...]) ? endBlock() : nil
        block.take(line[...])
        return ended
    }

    private mutating func endBlock() -> GDBBlock {
        let ended = block
        block = GDBBlock()
        return ended
    }

    /// A frame's line with those that continue it: on a terminal, gdb breaks lines before arguments and file names, and
    /// anywhere in a long name.
    private mutating func unwrapped(_ line: [UInt8]) -> ArraySlice<UInt8> {
        var whole = line
        while whole.count < 1 << 16, let next = lines.next()?.withoutColors {
            if next.starts(with: "    ".utf8), next.count > 4, !next[4].isBlank {
                whole.append(0x20)
                whole += next.dropFirst(4)
            } else if whole.count >= 60, !whole.contains(UInt8(ascii: ")")), let first = next.first,
                !first.isBlank, first != UInt8(ascii: "#"), !next.starts(with: "Thread ".utf8)
            {
                whole += next
            } else {
                lines.putBack()
                break
            }
        }
        return whole[...]
    }
}

/// The line before the frames of a thread: `Thread 5 (Thread 0x7f01 (LWP 2375) "name"):`.
struct GDBThreadLine {
    /// gdb's.
    var number: Int32
    var kernelNumber: Int32?
    var name: String?

    init?(_ line: ArraySlice<UInt8>) {
        guard line.begins(with: "Thread "), line.trimmed.ends(with: "):") else { return nil }
        self.init(part: line.dropFirst("Thread ".utf8.count))
    }

    /// `5 (Thread 0x7f01 (LWP 2375)`.
    init?(part: ArraySlice<UInt8>) {
        let digits = part.prefix(while: \.isDigit)
        guard let number = digits.decimal(Int32.self) else { return nil }
        self.number = number
        let rest = part[digits.endIndex...]
        guard rest.begins(with: " (") else { return nil }
        // Older ones have the kernel's number only.
        for mark in ["(LWP " as StaticString, "(process ", "(Thread "] {
            guard let found = rest.range(of: mark) else { continue }
            kernelNumber = rest[found.upperBound...].prefix { $0 != UInt8(ascii: ")") }
                .prefix { !$0.isBlank }.decimal(Int32.self)
            if kernelNumber != nil { break }
        }
        if let start = rest.firstIndex(of: UInt8(ascii: "\"")),
            let end = rest.lastIndex(of: UInt8(ascii: "\"")), start < end
        {
            name = rest[(start + 1)..<end].text
        }
    }
}
