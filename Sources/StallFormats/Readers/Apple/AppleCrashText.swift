// Crash reports of Apple's systems as text, and PLCrashReporter's, which teams write of a live process when its main
// thread does not answer.
//
// **Source:** microsoft/plcrashreporter, PLCrashReportTextFormatter.m; Apple, "Examining the fields in a crash report".

internal import StallModel
internal import StallQuery

/// Reads crash reports as text. Other lines around them are passed over.
struct AppleCrashText: FormatReader {
    private(set) var lines: TextLines

    init(_ lines: TextLines, _ options: ReadingOptions) { self.lines = lines }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        beginning.lines.contains { isFirst($0.drop(while: \.isWhitespace)) }
            && beginning.lines.contains { ThreadHeader(line: String($0)) != nil }
            && beginning.lines.contains {
                $0.hasPrefix("Binary Images:") || AppleFrameLine(String($0)) != nil
            }
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        guard let block = nextBlock() else { return nil }
        return block.report()
    }

    /// The lines of a report, in its parts.
    private mutating func nextBlock() -> AppleCrashBlock? {
        while let line = lines.nextText() {
            guard Self.isFirst(line.drop(while: \.isWhitespace)) else { continue }
            var block = AppleCrashBlock(line: lines.number)
            block.take(line)
            while let line = lines.nextText() {
                if Self.isFirst(line.drop(while: \.isWhitespace)), block.hasThreads {
                    lines.putBack()
                    break
                }
                block.take(line)
            }
            return block
        }
        return nil
    }

    /// Whether a report may begin with this line.
    private static func isFirst(_ line: Substring) -> Bool {
        line.hasPrefix("Incident Identifier:") || line.hasPrefix("Process:")
    }
}

/// The line before the frames of a thread.
struct ThreadHeader {
    var number: Int32
    var name: String?
    var isMain = false
    var isCrashed = false
    /// The line only names a thread whose frames come behind another line.
    var isNameOnly = false

    /// `Thread 0:`, `Thread 3 Crashed:: name`, `Thread 0 name:  Dispatch queue: com.apple.main-thread`.
    init?(line: String) {
        guard line.hasPrefix("Thread ") else { return nil }
        var rest = line.dropFirst("Thread ".count)
        guard let number = Int32(rest.prefix { $0.isASCII && $0.isNumber }) else { return nil }
        self.number = number
        rest = rest.drop { $0.isASCII && $0.isNumber }
        if rest.hasPrefix(" Crashed") {
            isCrashed = true
            rest = rest.dropFirst(" Crashed".count)
        } else if rest.hasPrefix(" name") {
            isNameOnly = true
            rest = rest.dropFirst(" name".count)
        }
        guard rest.hasPrefix(":") else { return nil }
        var text = rest.drop { $0 == ":" || $0 == " " || $0 == "\t" }
        if let queue = text.firstRange(of: "Dispatch queue: ") {
            isMain = text[queue.upperBound...].hasPrefix("com.apple.main-thread")
            if queue.lowerBound == text.startIndex { text = text[queue.upperBound...] }
        }
        while text.last?.isWhitespace == true { text.removeLast() }
        name = text.isEmpty ? nil : String(text)
        if number == 0 { isMain = true }
    }
}
