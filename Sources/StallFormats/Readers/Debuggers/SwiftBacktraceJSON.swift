// Crash reports of the Swift runtime's own backtracer as JSON (`SWIFT_BACKTRACE=format=json`). Its functions are
// mangled, and its frames say how they were found.
//
// **Source:** swiftlang/swift, docs/Backtracing.rst; the output of Swift 6.3.

internal import StallModel
internal import StallQuery

/// Reads JSON documents, one after the other, among the other output of a program.
struct SwiftBacktraceJSON: FormatReader {
    static var lineLimit: Int { 1 << 28 }
    /// Each value takes memory, many times as much as its text.
    private static let valueLimit = 1 << 23

    private(set) var lines: TextLines

    init(_ lines: TextLines, _ options: ReadingOptions) { self.lines = lines }

    static func recognizes(_ beginning: TextBeginning) -> Bool {
        let text = beginning.text.utf8.lazy.filter { $0 > 0x20 }
        return ArraySlice(text).range(of: "\"kind\":\"crashReport\"") != nil
            && beginning.lines.contains { isFirst(ArraySlice($0.utf8)) }
    }

    private static func isFirst(_ line: ArraySlice<UInt8>) -> Bool {
        line.trimmed.first == UInt8(ascii: "{")
    }

    mutating func next() throws(LineFault) -> ForeignReport? {
        while let line = lines.next() {
            guard Self.isFirst(line[...]) else { continue }
            let number = lines.number
            let document = try document(line, number)
            return try report(document, number)
        }
        return nil
    }

    /// The lines up to the end of the object.
    private mutating func document(_ first: [UInt8], _ number: Int) throws(LineFault) -> [UInt8] {
        var brackets = JSONBrackets()
        var document: [UInt8] = []
        var line: [UInt8]? = first
        while let part = line {
            guard document.count + part.count < Self.lineLimit else {
                throw LineFault(line: number, reason: "is longer than \(Self.lineLimit >> 20) MB")
            }
            let end = brackets.take(part)
            document += part[..<end]
            guard brackets.valueCount <= Self.valueLimit else {
                throw LineFault(line: number, reason: "has more than \(Self.valueLimit) values")
            }
            if brackets.isClosed { break }
            document.append(0x0a)
            line = lines.next()
        }
        return document
    }

    private func report(_ bytes: [UInt8], _ number: Int) throws(LineFault) -> ForeignReport {
        guard String(validating: bytes, as: UTF8.self) != nil else {
            throw LineFault(line: number, reason: "is not UTF-8")
        }
        let decoded: SwiftCrash
        do {
            decoded = try JSONLineDecoder.decode(SwiftCrash.self, from: bytes)
        } catch {
            throw LineFault(line: number, reason: "is no crash report of swift-backtrace")
        }
        guard decoded.kind == "crashReport" else {
            throw LineFault(line: number, reason: "is no crash report of swift-backtrace")
        }
        return decoded.report(line: number)
    }
}

/// Finds the end of a JSON object.
private struct JSONBrackets {
    private(set) var valueCount = 0
    private var depth = 0
    private var (isInString, isEscaped) = (false, false)

    var isClosed: Bool { depth == 0 && valueCount > 0 }

    /// - Returns: The index behind the object's end, or the line's.
    mutating func take(_ line: [UInt8]) -> Int {
        for place in line.indices {
            let byte = line[place]
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\"") {
                isInString.toggle()
            } else if isInString {
                isEscaped = byte == UInt8(ascii: "\\")
            } else {
                switch byte {
                case UInt8(ascii: "{"), UInt8(ascii: "["):
                    depth += 1
                    valueCount += 1
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    depth -= 1
                    if depth <= 0 { return place + 1 }
                case UInt8(ascii: ","), UInt8(ascii: ":"): valueCount += 1
                default: break
                }
            }
        }
        return line.count
    }
}
