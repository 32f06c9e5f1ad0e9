// Reports and other rows as JSON lines (`stallctl.report/1`, ...): what `stallctl export --format jsonl` writes, read back.
// docs/ingest.md describes the format. Any program may have written the lines.

internal import Glibc
import StallModel
package import StallQuery

/// Reads reports and other rows from JSON lines.
package struct ReportLines: ReportFeed {
    /// The longest line: a report of 32 samples with a thousand frames each stays below it.
    package static let lineLimit = 16 << 20
    /// The most values and keys of a line: 32 samples with a thousand frames each stay below it. Each becomes a value in
    /// memory, which may take thirty times as much as its text.
    static let valueLimit = 600_000

    private var lines: LineReader
    /// The number of the line that was read last, from 1.
    package private(set) var lineNumber = 0
    package var byteCount: Int { lines.byteCount }

    package init(_ stream: ByteStream) {
        lines = LineReader(stream, limit: Self.lineLimit)
    }

    /// - Parameters:
    ///   - closesIt: Closes the descriptor when the last copy of this goes.
    ///   - waits: Waits until there is something to read; false ends the reading there.
    package init(
        descriptor: CInt, closesIt: Bool = false, waits: @escaping () -> Bool = { true }
    ) {
        self.init(ByteStream(descriptor: descriptor, closesIt: closesIt, waits: waits))
    }

    /// Reads the lines of these bytes: of one batch that a sender pushed.
    package init(bytes: [UInt8]) { self.init(ByteStream(bytes: bytes)) }

    /// Whether a text that begins so is such lines.
    static func begins(_ bytes: some Collection<UInt8>) -> Bool {
        let first = bytes.prefix { $0 != 0x0a }
        return first.contains(UInt8(ascii: "{"))
            && String(decoding: first, as: UTF8.self).contains("\"stallctl.")
    }

    /// The next row; nil at the end. Empty lines are passed over.
    ///
    /// - Throws: The fault of the line; the next call continues behind it.
    package mutating func next() throws(LineFault) -> PortableRow? {
        while let line = lines.next() {
            lineNumber += 1
            switch line {
            case .tooLong: throw fault("is longer than \(Self.lineLimit >> 20) MB")
            case .whole(var bytes):
                if lineNumber == 1, bytes.starts(with: [0xef, 0xbb, 0xbf]) { bytes.removeFirst(3) }
                // UTF-16: its lines end in the middle of characters, and some would be taken all the same.
                let isWide =
                    lineNumber == 1
                    && (bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]))
                if isWide || bytes.contains(0) {
                    throw fault("is not UTF-8: it seems to be UTF-16")
                }
                if bytes.allSatisfy({ $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }) {
                    continue
                }
                return try row(bytes)
            }
        }
        if lines.errno != 0 { throw fault(String(cString: strerror(lines.errno))) }
        return nil
    }

    /// Whether reading itself failed, so that nothing more will come.
    package var hasFailed: Bool { lines.errno != 0 }

    private func fault(_ reason: String) -> LineFault {
        LineFault(line: lineNumber, reason: reason)
    }

    private func row(_ bytes: [UInt8]) throws(LineFault) -> PortableRow {
        guard let valid = String(validating: bytes, as: UTF8.self) else {
            throw fault("is not UTF-8")
        }
        guard valid.utf8.first == UInt8(ascii: "{") || valid.contains("{") else {
            throw fault("is not a JSON object")
        }
        guard bytes.hasJSONValues(upTo: Self.valueLimit) else {
            throw fault("has more than \(Self.valueLimit) values")
        }
        do {
            return try JSONLineDecoder.decode(AnyLine.self, from: bytes).row()
        } catch let problem as LineProblem {
            throw fault(problem.description)
        } catch let error as DecodingError {
            throw fault(error.clause)
        } catch {
            throw fault("cannot be read: \(error)")
        }
    }
}

extension [UInt8] {
    /// Whether the text has at most that many commas, colons and brackets outside of strings: an upper bound of its values.
    fileprivate func hasJSONValues(upTo limit: Int) -> Bool {
        // Each takes a byte and more.
        guard count > limit else { return true }
        var (found, isInString, isEscaped) = (0, false, false)
        for byte in self {
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\"") {
                isInString.toggle()
            } else if isInString {
                isEscaped = byte == UInt8(ascii: "\\")
            } else if byte == 0x2c || byte == 0x3a || byte == 0x5b || byte == 0x7b {
                found += 1
                if found > limit { return false }
            }
        }
        return true
    }
}

extension DecodingError {
    /// The error as a clause that names its path in the object.
    fileprivate var clause: String {
        func place(_ context: Context, _ last: (any CodingKey)? = nil) -> String {
            let path = (context.codingPath + (last.map { [$0] } ?? [])).reduce(into: "") {
                if let index = $1.intValue {
                    $0 += "[\(index)]"
                } else {
                    $0 += "." + $1.stringValue
                }
            }
            return path.isEmpty ? "the line" : String(path.drop { $0 == "." })
        }
        switch self {
        case .keyNotFound(let key, let context): return "lacks \(place(context, key))"
        case .valueNotFound(_, let context): return "has null in \(place(context))"
        case .typeMismatch(let type, let context):
            return "has a value other than \(Self.word(type)) in \(place(context))"
        case .dataCorrupted(let context):
            if context.codingPath.isEmpty { return "is not JSON: \(context.debugDescription)" }
            return "has a value out of range in \(place(context))"
        @unknown default: return "cannot be read"
        }
    }

    private static func word(_ type: any Any.Type) -> String {
        switch type {
        case is String.Type: "text"
        case is Bool.Type: "true or false"
        case is Double.Type, is Int.Type, is Int32.Type, is Int64.Type: "a number"
        default: "the expected type"
        }
    }
}
