// The first line of an event of `perf script`, and the lines of its stack.
//
//     main thread 4711/4712 [001]  1641.996899:   10101010 cpu-clock:
//     	            132a outer+0x1a (/usr/bin/app)
//
// **Source:** Linux, tools/perf/builtin-script.c, `process_event`; swift-profile-recorder, OutputFormatRendering/
// PerfScript.swift, which writes neither a period nor the last colon.

/// `comm pid/tid [cpu] time: period event:`, of which all but the command and the thread may be missing.
struct PerfEventLine {
    /// Its time is from when the machine started.
    var thread: SampledThread
    var event: ArraySlice<UInt8>
    /// Behind the event: its frame, if events have no stacks, or its values.
    var rest: ArraySlice<UInt8>

    init?(_ line: ArraySlice<UInt8>) {
        guard let (before, time, behind) = Self.split(line) else { return nil }
        var head = before.trimmed
        // `[001]` and, with some options, flags.
        for _ in 0..<2 where Self.ids(Self.lastWord(head)) == nil {
            head = head.prefix(head.count - Self.lastWord(head).count).trimmed
        }
        let number = Self.lastWord(head)
        guard let (pid, tid) = Self.ids(number) else { return nil }
        var command = head.prefix(head.count - number.count).trimmed
        if pid != nil, command.ends(with: "-T\(tid)") {
            command = command.dropLast(2 + "\(tid)".utf8.count)
        }
        rest = behind
        event = rest.takeWord()
        if event.decimal(Int64.self) != nil { event = rest.takeWord() }
        if event.last == UInt8(ascii: ":") { event.removeLast() }
        guard !command.isEmpty || pid != nil else { return nil }
        thread = SampledThread(command: command, pid: pid, tid: tid, time: time)
    }

    /// At the time; in a line without one, behind the first number that can be a thread's.
    private static func split(
        _ line: ArraySlice<UInt8>
    ) -> (before: ArraySlice<UInt8>, time: Int64?, behind: ArraySlice<UInt8>)? {
        var words = line
        while true {
            let word = words.takeWord()
            guard !word.isEmpty else { break }
            if word.last == UInt8(ascii: ":"), let time = time(word.dropLast()) {
                return (line[..<word.startIndex], time, words)
            }
        }
        guard line.trimmed.last == UInt8(ascii: ":") else { return nil }
        var rest = line
        guard !rest.takeWord().isEmpty else { return nil }
        while !rest.isEmpty {
            if ids(rest.takeWord()) != nil {
                var behind = rest
                let cpu = behind.takeWord()
                return (
                    line[..<rest.startIndex], nil, cpu.first == UInt8(ascii: "[") ? behind : rest
                )
            }
        }
        return nil
    }

    private static func lastWord(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        text[(text.lastIndex { $0.isBlank }.map { $0 + 1 } ?? text.startIndex)...]
    }

    /// `tid` or `pid/tid`.
    private static func ids(_ word: ArraySlice<UInt8>) -> (pid: Int32?, tid: Int32)? {
        guard let slash = word.firstIndex(of: UInt8(ascii: "/")) else {
            return word.decimal(Int32.self).map { (nil, $0) }
        }
        guard let pid = word[..<slash].decimal(Int32.self),
            let tid = word[(slash + 1)...].decimal(Int32.self)
        else { return nil }
        return (pid, tid)
    }

    /// Seconds with decimals, in nanoseconds: up to 126 years, so that twice as much is a duration.
    private static func time(_ word: ArraySlice<UInt8>) -> Int64? {
        guard let point = word.firstIndex(of: UInt8(ascii: ".")),
            let seconds = word[..<point].decimal(Int64.self), seconds < 4_000_000_000
        else { return nil }
        let digits = word[(point + 1)...].prefix(9)
        guard var part = digits.decimal(Int64.self) else { return nil }
        for _ in digits.count..<9 { part *= 10 }
        return seconds * 1_000_000_000 + part
    }
}

extension ArraySlice<UInt8> {
    fileprivate func ends(with text: String) -> Bool {
        count >= text.utf8.count && suffix(text.utf8.count).elementsEqual(text.utf8)
    }
}

extension ForeignFrame {
    /// `address function+0x12 (binary)`, with the line of its source, if any, behind an end of line.
    ///
    /// The address is the process's: where the binary was loaded is not known, so it takes the place of a name only.
    init?(perfLine line: ArraySlice<UInt8>) {
        self.init()
        var rest = line
        if let end = line.firstIndex(of: 0x0a) {
            rest = line[..<end]
            if let place = line[(end + 1)...].trimmed.place() { (file, self.line) = place }
        }
        rest = rest.trimmed
        var behind = rest
        let address = behind.takeWord().hexadecimal()
        if address != nil {
            rest = behind.trimmed
        } else if rest.last != UInt8(ascii: ")") {
            return nil
        }
        takeBinary(&rest)
        if let plus = rest.lastRange(of: "+0x"), rest[plus.upperBound...].hexadecimal() != nil {
            rest = rest[..<plus.lowerBound]
        }
        if rest.ends(with: " [inlined]" as StaticString) {
            isInlined = true
            rest = rest.dropLast(" [inlined]".utf8.count)
        }
        rest = rest.trimmed
        if rest.isEmpty || rest.elementsEqual("[unknown]".utf8) {
            offset = offset ?? address
        } else if let place = rest.unknownPlace {
            offset = place
        } else {
            function = rest.withoutVersion.text
            offset = nil
        }
    }

    /// `(path)`, `(path+0x12)`, `(path (deleted))` or `(inlined)` at the end. A path may have parentheses, as a name
    /// may.
    private mutating func takeBinary(_ rest: inout ArraySlice<UInt8>) {
        guard rest.last == UInt8(ascii: ")"), let start = rest.lastGroup else { return }
        var path = rest[(start + 1)...].dropLast()
        rest = rest[..<start].trimmed
        if path.elementsEqual("inlined".utf8) {
            isInlined = true
            return
        }
        if path.ends(with: " (deleted)" as StaticString) {
            path = path.dropLast(" (deleted)".utf8.count)
        }
        if let plus = path.lastRange(of: "+0x"), let place = path[plus.upperBound...].hexadecimal()
        {
            path = path[..<plus.lowerBound]
            offset = place
        }
        // swift-profile-recorder's word for none is the second one.
        guard !path.isEmpty, !path.elementsEqual("[unknown]".utf8),
            !path.elementsEqual("unknown-lib".utf8)
        else { return }
        image = path.text
    }
}

extension ArraySlice<UInt8> {
    /// The address in the binary, where swift-profile-recorder found no name: `unknown @ 0x1f40`.
    var unknownPlace: UInt64? {
        guard begins(with: "unknown") || begins(with: "malformed-input"),
            let mark = lastRange(of: " @ 0x")
        else { return nil }
        return self[mark.upperBound...].hexadecimal()
    }

    /// The parenthesis that the last one closes, if it begins a word.
    fileprivate var lastGroup: Int? {
        var depth = 0
        for place in indices.reversed() {
            if self[place] == UInt8(ascii: ")") { depth += 1 }
            guard self[place] == UInt8(ascii: "(") else { continue }
            depth -= 1
            if depth == 0 { return place == startIndex || self[place - 1].isBlank ? place : nil }
        }
        return nil
    }
}
