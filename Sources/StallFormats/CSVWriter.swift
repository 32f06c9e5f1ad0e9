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
        var row = ""
        for (index, field) in fields.enumerated() {
            if index > 0 { row += "," }
            switch field {
            case .plain(let text): append(text, to: &row)
            case .text(let text):
                // Mostly a name of a program's: nothing in it needs a change, and a stack of them is long.
                if visible == nil, text.isPlainCell {
                    row += text
                } else {
                    append(isRaw ? shown(text) : guarded(shown(text)), to: &row)
                }
            }
        }
        row += "\r\n"
        return row
    }

    /// A NUL is always `\0`: many readers end a cell there, or reject the file.
    private func shown(_ text: String) -> String {
        if let visible { return visible(text) }
        return text.utf8.contains(0) ? text.replacing("\0", with: "\\0") : text
    }

    private func append(_ text: String, to row: inout String) {
        guard
            text.utf8.contains(where: { $0 == 0x22 || $0 == 0x2c || $0 == 0x0a || $0 == 0x0d })
                || text.hasEdgeSpace
        else { return row += text }
        row += "\"" + text.replacing("\"", with: "\"\"") + "\""
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

extension String {
    /// Whether it begins with a letter, a digit or an underscore, ends with what is no space, and has nothing that is
    /// written otherwise in a cell.
    fileprivate var isPlainCell: Bool {
        var text = self
        return text.withUTF8 { bytes in
            guard let first = bytes.first, let last = bytes.last, last > 0x20, last < 0x7f else {
                return false
            }
            // Letters in either case.
            guard
                UInt8(ascii: "a")...UInt8(ascii: "z") ~= first | 0x20
                    || UInt8(ascii: "0")...UInt8(ascii: "9") ~= first || first == UInt8(ascii: "_")
            else { return false }
            for byte in bytes
            where byte == 0x22 || byte == 0x2c || byte == 0x0a || byte == 0x0d || byte == 0 {
                return false
            }
            return true
        }
    }

    fileprivate var hasEdgeSpace: Bool { first?.isWhitespace == true || last?.isWhitespace == true }
}

extension Substring.UnicodeScalarView {
    fileprivate var startsFormula: Bool {
        guard let start = first(where: { $0 != " " && $0 != "\u{a0}" }) else { return false }
        return "=+-@'\t\r＝＋－＠".unicodeScalars.contains(start)
    }
}
