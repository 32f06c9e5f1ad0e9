// The JSON texts of a file: one over many lines, one a line, or several one after the other. Broken ones are faults,
// and reading continues at the next.

internal import StallQuery

/// Reads JSON texts from lines. Commas before a closing bracket, which some writers leave there, are dropped.
struct JSONTexts {
    /// The longest text, in bytes.
    static let sizeLimit = 1 << 28
    /// Values of one text: each takes memory, however short it is.
    private static let valueLimit = 1 << 22
    /// A call of a MetricKit stack is two levels; a report has a thousand calls.
    private static let depthLimit = 2048

    private(set) var lines: TextLines
    /// The part of the last line behind the last text.
    private var rest: ArraySlice<UInt8> = []
    /// Whether a line begins a text, even where the one before has no end.
    private let isFirst: ([UInt8]) -> Bool

    init(_ lines: TextLines, isFirst: @escaping ([UInt8]) -> Bool = { _ in false }) {
        self.lines = lines
        self.isFirst = isFirst
    }

    /// The next text; nil at the end.
    mutating func next() throws(LineFault) -> JSONLocatedText? {
        guard try findText() else { return nil }
        let first = lines.number
        var text = JSONTextEnd()
        while true {
            let length = text.take(rest)
            rest = rest.dropFirst(length)
            if text.isComplete { break }
            guard let line = nextLine() else {
                throw LineFault(line: first, reason: "the JSON text has no end")
            }
            if text.isBroken(before: line) || isFirst(line) {
                lines.putBack()
                rest = []
                throw LineFault(line: first, reason: "the JSON text has no end")
            }
            rest = line[...]
        }
        guard text.size <= Self.sizeLimit else {
            throw LineFault(
                line: first, reason: "the JSON text is longer than \(Self.sizeLimit >> 20) MB")
        }
        guard text.valueCount <= Self.valueLimit else {
            throw LineFault(
                line: first, reason: "the JSON text has more than \(Self.valueLimit) values")
        }
        do {
            return JSONLocatedText(
                line: first, document: try JSONDocument(text.bytes, depthLimit: Self.depthLimit))
        } catch DecodingError.dataCorrupted(let context) {
            throw LineFault(line: first, reason: "is not JSON: \(context.debugDescription)")
        } catch {
            throw LineFault(line: first, reason: "is not JSON")
        }
    }

    /// The next line, without the rest of the last one; nil at the end.
    mutating func nextLine() -> [UInt8]? {
        rest = []
        return lines.next()
    }

    /// The next call of `next` or `nextLine` begins with the last line.
    mutating func putBack() {
        rest = []
        lines.putBack()
    }

    /// Passes over empty lines, up to the first bracket of a text.
    ///
    /// - Throws: The first line that is neither; the next call continues behind all of them.
    private mutating func findText() throws(LineFault) -> Bool {
        var noise: Int?
        while true {
            rest = rest.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0d }
            if lines.number == 1, rest.starts(with: [0xef, 0xbb, 0xbf]) {
                rest = rest.dropFirst(3)
                continue
            }
            if let byte = rest.first {
                if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") { break }
                if noise == nil { noise = lines.number }
            }
            let byteCount = lines.byteCount
            rest = []
            guard let line = lines.next() else {
                if let noise { throw LineFault(line: noise, reason: "is not JSON") }
                return false
            }
            // A line over the limit is given as an empty one.
            if line.isEmpty, lines.byteCount - byteCount > Self.sizeLimit {
                throw LineFault(
                    line: lines.number,
                    reason: "the JSON text is longer than \(Self.sizeLimit >> 20) MB")
            }
            rest = line[...]
        }
        if let noise { throw LineFault(line: noise, reason: "is not JSON") }
        return true
    }
}

/// The bytes of a JSON text, up to the bracket that closes it.
private struct JSONTextEnd {
    private(set) var bytes: [UInt8] = []
    private(set) var size = 0
    /// An upper bound.
    private(set) var valueCount = 0
    private(set) var isComplete = false
    private var depth = 0
    /// The last byte that is not space, and its index.
    private var last = (byte: UInt8(0), index: 0)

    /// Takes a line, or its rest, up to the end of the text.
    ///
    /// - Returns: How many bytes it took.
    mutating func take(_ line: ArraySlice<UInt8>) -> Int {
        var (isInString, isEscaped) = (false, false)
        let isKept = size + line.count < JSONTexts.sizeLimit
        for place in line.indices {
            let byte = line[place]
            if isKept { bytes.append(byte) }
            if isInString {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInString = false
                }
                continue
            }
            switch byte {
            case 0x20, 0x09, 0x0d: continue
            case UInt8(ascii: "\""): isInString = true
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                valueCount += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                if last.byte == UInt8(ascii: ","), last.index < bytes.count {
                    bytes[last.index] = 0x20
                }
            case UInt8(ascii: ","), UInt8(ascii: ":"): valueCount += 1
            default: break
            }
            last = (byte, bytes.count - 1)
            if depth == 0 {
                size += place - line.startIndex + 1
                isComplete = true
                return place - line.startIndex + 1
            }
        }
        size += line.count + 1
        if isKept { bytes.append(0x0a) }
        return line.count
    }

    /// Whether a line can only be the beginning of another text: an object stands behind a bracket, a comma or a colon.
    func isBroken(before line: [UInt8]) -> Bool {
        guard line.first(where: { $0 != 0x20 && $0 != 0x09 }) == UInt8(ascii: "{") else {
            return false
        }
        return ![UInt8(ascii: "["), UInt8(ascii: ","), UInt8(ascii: ":")].contains(last.byte)
    }
}

/// A JSON text and its first line.
struct JSONLocatedText {
    let document: JSONDocument
    private var place: Int
    private var line: Int

    init(line: Int, document: JSONDocument) {
        self.line = line
        self.document = document
        place = document.bytes.startIndex
    }

    var root: JSONNode { JSONNode(document, 0) }

    /// The line of a value, which is not before that of the last call.
    mutating func line(of node: JSONNode) -> Int {
        let start = document.bytes(node.index).startIndex
        while place < start {
            if document.bytes[place] == 0x0a { line += 1 }
            place += 1
        }
        return line
    }
}
