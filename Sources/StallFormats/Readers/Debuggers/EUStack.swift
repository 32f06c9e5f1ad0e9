// The stacks of all threads by eu-stack of elfutils, of a process or of a core file.
//
//     TID 4711:
//     #3  0x0000563f615bf3c9 - 1 waiting - /usr/bin/app
//         [33162ef0]@0x563f615be000+0x13c8
//         app.c:12:48
//
// **Source:** elfutils, src/stack.c, `print_frame`.

internal import StallModel
internal import StallQuery

/// Reads eu-stack's output, with any of its options.
struct EUStack: FormatReader {
    /// Bounds of one stack, of all of them in bytes, and of the threads.
    private static let (stackLimit, byteLimit, threadLimit) = (1024, 1 << 28, 1 << 16)

    private(set) var lines: TextLines

    init(_ lines: TextLines, _ options: ReadingOptions) { self.lines = lines }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        beginning.lines.contains { processID(ArraySlice($0.utf8)) != nil }
            && beginning.lines.contains { threadID(ArraySlice($0.utf8)) != nil }
    }

    /// `PID 4711 - process`.
    private static func processID(_ line: ArraySlice<UInt8>) -> Int32? {
        guard line.begins(with: "PID ") else { return nil }
        let digits = line.dropFirst(4).prefix(while: \.isDigit)
        let rest = line[digits.endIndex...].trimmed
        guard rest.elementsEqual("- process".utf8) || rest.elementsEqual("- core".utf8) else {
            return nil
        }
        return digits.decimal(Int32.self)
    }

    /// `TID 4711:`.
    private static func threadID(_ line: ArraySlice<UInt8>) -> Int32? {
        guard line.begins(with: "TID "), line.last == UInt8(ascii: ":") else { return nil }
        return line.dropFirst(4).dropLast().decimal(Int32.self)
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        while let line = lines.next() {
            if let pid = Self.processID(line[...]) { return report(pid) }
        }
        return nil
    }

    private mutating func report(_ pid: Int32) -> ForeignReport {
        var report = ForeignReport(kind: .snapshot, line: lines.number)
        report.pid = pid
        var stack = EUStackFrames()
        var byteCount = 0
        func end() {
            guard let last = report.threads.indices.last, let sample = stack.sample else { return }
            report.threads[last].samples = [sample]
            stack = EUStackFrames()
        }
        while let bytes = lines.next() {
            let line = bytes[...]
            if Self.processID(line) != nil {
                lines.putBack()
                break
            } else if let tid = Self.threadID(line) {
                end()
                guard report.threads.count < Self.threadLimit else { break }
                report.threads.append(ForeignThread(number: tid, isMain: tid == pid))
            } else if !report.threads.isEmpty {
                byteCount += stack.take(
                    line, hasRoom: byteCount < Self.byteLimit && stack.count < Self.stackLimit)
            }
        }
        end()
        return report
    }
}

/// The frames of one thread.
private struct EUStackFrames {
    private var frames: [ForeignFrame] = []
    private var addresses: [UInt64] = []
    private var isTruncated = false

    var count: Int { frames.count }

    /// - Returns: About how much memory it took.
    mutating func take(_ line: ArraySlice<UInt8>, hasRoom: Bool) -> Int {
        if line.first == UInt8(ascii: "#") {
            guard hasRoom else {
                isTruncated = true
                return 0
            }
            takeFrame(line.dropFirst())
            return 256 + line.count
        }
        if line.begins(with: "eu-stack: ") {
            // `dwfl_thread_getframes tid 4711 at 0x4010d0: no matching address range`, or as many as `-n` allows.
            isTruncated =
                isTruncated || line.range(of: "dwfl_thread_getframes") != nil
                || line.range(of: "max number of frames") != nil
        } else if line.begins(with: "    "), let last = frames.indices.last {
            takeDetail(line.trimmed, of: last)
        }
        return 0
    }

    private mutating func takeFrame(_ line: ArraySlice<UInt8>) {
        var rest = line
        guard rest.takeWord().decimal(Int32.self) != nil, let address = rest.takeWord().address()
        else { return }
        var frame = ForeignFrame()
        // The call is before a return address: `- 1`.
        if rest.begins(with: " - 1"), rest.count == 4 || rest.dropFirst(4).first == 0x20 {
            rest = rest.dropFirst(4)
        }
        if rest.begins(with: " - /") || rest.begins(with: " - [") {
            frame.image = rest.dropFirst(3).text
        } else if let dash = rest.lastRange(of: " - ") {
            frame.image = rest[dash.upperBound...].text
            rest = rest[..<dash.lowerBound]
            takeName(rest.trimmed, &frame)
        } else {
            takeName(rest.trimmed, &frame)
        }
        if frame.function == nil { frame.offset = address }
        frames.append(frame)
        addresses.append(address)
    }

    private func takeName(_ name: ArraySlice<UInt8>, _ frame: inout ForeignFrame) {
        if !name.isEmpty { frame.function = name.withoutVersion.text }
    }

    /// `[build id]@0xbase+0xoffset`, or `file:line:column`.
    private mutating func takeDetail(_ line: ArraySlice<UInt8>, of place: Int) {
        if line.first == UInt8(ascii: "["), let end = line.range(of: "]@") {
            let base = line[end.upperBound...].prefix { $0 != UInt8(ascii: "+") }.address()
            guard let base, base <= addresses[place],
                let id = BuildID(hexadecimal: line[..<end.lowerBound].dropFirst().text)
            else { return }
            frames[place].buildID = id
            frames[place].offset = addresses[place] - base
        } else if frames[place].file == nil, let place = line.place() {
            (frames[frames.count - 1].file, frames[frames.count - 1].line) = place
        }
    }

    /// Nil without frames.
    var sample: ForeignSample? {
        guard !frames.isEmpty || isTruncated else { return nil }
        var stack = frames
        // With -i, a function that was inlined has the address of the one that it is in. One that calls itself has its
        // own name twice.
        for place in stack.indices.dropLast()
        where addresses[place] == addresses[place + 1]
            && stack[place].function != stack[place + 1].function
        {
            stack[place].isInlined = true
        }
        stack.completeInlined()
        return ForeignSample(frames: stack, isTruncated: isTruncated)
    }
}
