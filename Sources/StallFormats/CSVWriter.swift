// CSV that spreadsheets open as text, never as formulas.

/// Writes rows as RFC 4180 has them: CRLF, quotes where needed, quotes doubled.
package struct CSVWriter {
    /// Leave out the protection against formulas (`--csv-raw`).
    private let isRaw: Bool
    /// How names are written where the reader is a terminal, which acts on control characters.
    private let visible: ((String) -> String)?

    package init(isRaw: Bool = false, visible: ((String) -> String)? = nil) {
        (self.isRaw, self.visible) = (isRaw, visible)
    }

    /// One field of a row.
    package enum Field {
        /// A number, a time or an id that we made: written as it is.
        case plain(String)
        /// A name from a user's program or file.
        case text(String)
    }

    /// The row with its line end.
    package func row(_ fields: [Field]) -> String {
        var row: [UInt8] = []
        append(fields, to: &row)
        endRow(&row)
        return String(decoding: row, as: UTF8.self)
    }

    /// Appends fields, each with a comma behind it: fields that were written once can be appended to many rows.
    package func append(_ fields: [Field], to row: inout [UInt8]) {
        for field in fields {
            append(field, to: &row)
            row.append(UInt8(ascii: ","))
        }
    }

    /// Appends one field of many names.
    ///
    /// - Parameter isPlain: Whether ``isPlain(_:)`` holds for each of them.
    package func append(names text: [UInt8], isPlain: Bool, to row: inout [UInt8]) {
        if isPlain, visible == nil, text.hasPlainEnds {
            row += text
        } else {
            append(.text(String(decoding: text, as: UTF8.self)), to: &row)
        }
        row.append(UInt8(ascii: ","))
    }

    /// Ends a row.
    package func endRow(_ row: inout [UInt8]) {
        if row.last == UInt8(ascii: ",") { row.removeLast() }
        row += [0x0d, 0x0a]
    }

    /// Whether no character of it is written otherwise inside of a field.
    package static func isPlain(_ text: some Sequence<UInt8>) -> Bool {
        !text.contains { $0 == 0x22 || $0 == 0x2c || $0 == 0x0a || $0 == 0x0d || $0 == 0 }
    }

    private func append(_ field: Field, to row: inout [UInt8]) {
        switch field {
        case .plain(let text): append(text, to: &row)
        case .text(let text):
            // Mostly a name of a program's: nothing in it needs a change, and a stack of them is long.
            if visible == nil, text.isPlainCell {
                row += text.utf8
            } else {
                append(isRaw ? shown(text) : guarded(shown(text)), to: &row)
            }
        }
    }

    /// A NUL is always `\0`: many readers end a field there, or reject the file.
    private func shown(_ text: String) -> String {
        if let visible { return visible(text) }
        return text.utf8.contains(0) ? text.replacing("\0", with: "\\0") : text
    }

    private func append(_ text: String, to row: inout [UInt8]) {
        guard
            text.utf8.contains(where: { $0 == 0x22 || $0 == 0x2c || $0 == 0x0a || $0 == 0x0d })
                || text.hasEdgeSpace
        else { return row += text.utf8 }
        row.append(0x22)
        row += text.replacing("\"", with: "\"\"").utf8
        row.append(0x22)
    }

    /// Prefixes `'` to each line that a spreadsheet would run as a formula, or that starts with `'` itself, so that
    /// removing one `'` from each line that has one restores the text.
    ///
    /// **Source:** OWASP, "CSV Injection"; the full-width forms are triggers in some locales.
    private func guarded(_ text: String) -> String {
        let isOneLine = !text.utf8.contains { $0 == 0x0a || $0 == 0x0d }
        if isOneLine { return text.unicodeScalars[...].startsFormula ? "'" + text : text }
        var result = ""
        var isLineStart = true
        var rest = text.unicodeScalars[...]
        while let scalar = rest.first {
            if isLineStart, rest.startsFormula { result.append("'") }
            isLineStart = scalar == "\n" || scalar == "\r"
            result.unicodeScalars.append(scalar)
            rest.removeFirst()
        }
        return result
    }
}

extension RandomAccessCollection<UInt8> {
    /// Whether it begins with a letter, a digit or an underscore, and does not end with a space.
    fileprivate var hasPlainEnds: Bool {
        guard let first, let last, last > 0x20, last < 0x7f else { return false }
        // Letters in either case.
        return UInt8(ascii: "a")...UInt8(ascii: "z") ~= first | 0x20
            || UInt8(ascii: "0")...UInt8(ascii: "9") ~= first || first == UInt8(ascii: "_")
    }
}

extension String {
    /// Whether a field of a name is just this text.
    fileprivate var isPlainCell: Bool {
        var text = self
        return text.withUTF8 { $0.hasPlainEnds && CSVWriter.isPlain($0) }
    }

    fileprivate var hasEdgeSpace: Bool {
        // For most fields a byte at each end decides.
        if let first = utf8.first, let last = utf8.last, 0x21...0x7e ~= first, 0x21...0x7e ~= last {
            return false
        }
        return first?.isWhitespace == true || last?.isWhitespace == true
    }
}

extension Substring.UnicodeScalarView {
    fileprivate var startsFormula: Bool {
        guard let start = first(where: { $0 != " " && $0 != "\u{a0}" }) else { return false }
        return "=+-@'\t\r＝＋－＠".unicodeScalars.contains(start)
    }
}
