// Crash reports of the Swift runtime's own backtracer as text. The JSON that it writes contains more.
//
// **Source:** swiftlang/swift, stdlib/public/RuntimeModule/BacktraceFormatter.swift and docs/Backtracing.rst; output of
// Swift 6.3.

internal import StallModel
internal import StallQuery

/// Reads backtraces among the other output of a program.
struct SwiftBacktraceText: FormatReader {
    private(set) var lines: TextLines

    init(_ lines: TextLines, _ options: ReadingOptions) { self.lines = lines }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        beginning.lines.contains { isFirst(Array($0.utf8).withoutColors[...]) }
    }

    /// `*** Program crashed: Illegal instruction at 0x4010d0 ***`, with an emoji on terminals.
    private static func isFirst(_ line: ArraySlice<UInt8>) -> Bool {
        for mark in [" Program crashed: " as StaticString, " Swift runtime failure: "] {
            guard let found = line.lastRange(of: mark) else { continue }
            let before = line[..<found.lowerBound].trimmed
            if before.ends(with: "***") || before.ends(with: "💣") { return true }
        }
        return false
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        while let line = lines.next() {
            guard Self.isFirst(line.withoutColors[...]) else { continue }
            var block = SwiftBacktraceBlock(line: lines.number)
            while let bytes = lines.next() {
                let line = bytes.withoutColors[...]
                if Self.isFirst(line) {
                    lines.putBack()
                    break
                }
                block.take(line)
                if line.begins(with: "Backtrace took ") { break }
            }
            return block.report()
        }
        return nil
    }
}

/// Takes the lines of one report.
private struct SwiftBacktraceBlock {
    private static let (stackLimit, byteLimit, threadLimit) = (1024, 1 << 28, 1 << 16)

    private struct Thread {
        var number: Int32
        var name: String?
        var frames: [SwiftFrameLine] = []
        var isTruncated = false
    }

    private enum Section { case threads, registers, images }

    private let line: Int
    private var threads: [Thread] = []
    private var crashed: Int?
    private var images: [Image] = []
    private var section = Section.threads
    private var byteCount = 0
    private var platform: String?

    init(line: Int) { self.line = line }

    mutating func take(_ line: ArraySlice<UInt8>) {
        if line.begins(with: "Thread "), line.last == UInt8(ascii: ":") {
            takeThread(line.dropFirst("Thread ".utf8.count).dropLast())
        } else if line.begins(with: "Platform: "), platform == nil, threads.isEmpty {
            // `x86_64 Linux (Debian GNU/Linux 12 (bookworm))`: the architecture is first.
            let words = line.dropFirst("Platform: ".utf8.count)
            platform = words.drop { $0 != UInt8(ascii: " ") }.trimmed.text
        } else if line.begins(with: "Registers:") {
            section = .registers
        } else if line.begins(with: "Images") {
            section = .images
        } else if section == .images {
            guard images.count < Self.threadLimit, let image = Self.image(line) else { return }
            images.append(image)
        } else if section == .threads, let last = threads.indices.last {
            if line.trimmed.elementsEqual("...".utf8) {
                threads[last].isTruncated = true
            } else if let frame = SwiftFrameLine(line) {
                guard threads[last].frames.count < Self.stackLimit, byteCount < Self.byteLimit
                else {
                    threads[last].isTruncated = true
                    return
                }
                threads[last].frames.append(frame)
                byteCount += 256 + line.count
            }
        }
    }

    /// `4 "name" crashed`.
    private mutating func takeThread(_ text: ArraySlice<UInt8>) {
        let digits = text.prefix(while: \.isDigit)
        guard threads.count < Self.threadLimit, let number = digits.decimal(Int32.self) else {
            return
        }
        var rest = text[digits.endIndex...]
        if rest.ends(with: " crashed") {
            crashed = crashed ?? threads.count
            rest = rest.dropLast(" crashed".utf8.count)
        }
        rest = rest.trimmed
        var thread = Thread(number: number)
        if rest.count >= 2, rest.first == UInt8(ascii: "\""), rest.last == UInt8(ascii: "\"") {
            thread.name = rest.dropFirst().dropLast().text
        }
        threads.append(thread)
        section = .threads
    }

    /// `0x55e3–0x55e4 8108575178 app /usr/bin/app`, with an en dash.
    private static func image(_ line: ArraySlice<UInt8>) -> Image? {
        guard let dash = line.range(of: "\u{2013}") else { return nil }
        var rest = line[dash.upperBound...]
        guard let start = line[..<dash.lowerBound].trimmed.address(),
            let end = rest.takeWord().address(), end >= start
        else { return nil }
        var id: BuildID?
        if rest.trimmed.begins(with: "<no build ID>") {
            rest = rest.trimmed.dropFirst("<no build ID>".utf8.count)
        } else {
            id = BuildID(hexadecimal: rest.takeWord().text)
        }
        let path = rest.range(of: " /").map { rest[($0.lowerBound + 1)...] } ?? rest
        guard !path.trimmed.isEmpty else { return nil }
        return Image(path: path.trimmed.text, buildID: id, loadAddress: start, endAddress: end)
    }

    func report() -> ForeignReport {
        var report = ForeignReport(kind: .crash, line: line)
        let sorted = SortedImages(images)
        report.takeMachine(os: platform, device: nil)
        report.images = images
        report.stalledThread = crashed
        report.takeExecutable()
        report.threads = threads.map { thread in
            // The first one is the process's; the others have what the kernel kept of their names.
            var made = ForeignThread(
                number: thread.number, name: thread.name, isMain: thread.number == 0)
            var frames = thread.frames.map { $0.frame(sorted) }
            frames.completeInlinedImages()
            if !frames.isEmpty || thread.isTruncated {
                made.samples = [ForeignSample(frames: frames, isTruncated: thread.isTruncated)]
            }
            return made
        }
        return report
    }
}

extension ForeignReport {
    /// The app is the only binary that is no library.
    mutating func takeExecutable() {
        let programs = images.filter {
            !$0.name.contains(".so") && !$0.name.hasPrefix("[") && !$0.name.hasPrefix("linux-vdso")
        }
        guard programs.count == 1 else { return }
        app = programs[0].name
        buildID = programs[0].buildID
    }
}
