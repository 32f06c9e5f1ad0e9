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
        fields.map { field in
            switch field {
            case .plain(let text): quoted(text)
            case .text(let text):
                quoted(isRaw ? shown(text) : guarded(shown(text)))
            }
        }.joined(separator: ",") + "\r\n"
    }

    /// A NUL is always `\0`: many readers end a cell there, or reject the file.
    private func shown(_ text: String) -> String {
        if let visible { return visible(text) }
        return text.utf8.contains(0) ? text.replacing("\0", with: "\\0") : text
    }

    private func quoted(_ text: String) -> String {
        guard
            text.utf8.contains(where: { [0x22, 0x2c, 0x0a, 0x0d].contains($0) })
                || text.hasEdgeSpace
        else { return text }
        return "\"" + text.replacing("\"", with: "\"\"") + "\""
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
    fileprivate var hasEdgeSpace: Bool { first?.isWhitespace == true || last?.isWhitespace == true }
}

extension Substring.UnicodeScalarView {
    fileprivate var startsFormula: Bool {
        guard let start = first(where: { $0 != " " && $0 != "\u{a0}" }) else { return false }
        return "=+-@'\t\r＝＋－＠".unicodeScalars.contains(start)
    }
}
