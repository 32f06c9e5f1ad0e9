// The width of text in terminal columns, and truncation to a width.

extension Character {
    /// Columns of this character in a terminal: 0, 1 or 2.
    ///
    /// **Source:** Unicode Standard Annex 11, "East Asian Width"; emoji by UTS 51.
    var displayWidth: Int {
        if unicodeScalars.contains(where: { $0.value == 0xfe0f }) { return 2 }
        return unicodeScalars.reduce(0) { max($0, $1.displayWidth) }
    }
}

extension String {
    /// Columns of this text in a terminal.
    var displayWidth: Int {
        utf8.allSatisfy { $0 < 0x80 } ? utf8.count : reduce(0) { $0 + $1.displayWidth }
    }

    /// The text, or its beginning and end around `…` if it is wider than `width` columns.
    ///
    /// The ends of a name identify it better than its middle: `closure #1 in Gal…relayout(_:)`.
    func truncatedInMiddle(to width: Int) -> String {
        guard displayWidth > width else { return self }
        guard width > 0 else { return "" }
        let characters = Array(self)
        let tail = characters.reversed().countFitting((width - 1) / 2)
        let tailWidth = characters.suffix(tail).reduce(0) { $0 + $1.displayWidth }
        let head = characters.countFitting(width - 1 - tailWidth)
        return String(characters.prefix(head)) + "…" + String(characters.suffix(tail))
    }

    /// Wraps the text at spaces to lines of at most `width` columns; a wider word gets a line of its own. Lines after
    /// the first begin with `indentation` spaces. Colors are closed at the end of a line and opened again.
    func wrapped(to width: Int?, indentation: Int = 0) -> [String] {
        guard let width, shownWidth > width else { return [self] }
        let margin = String(repeating: " ", count: indentation)
        let start = String(prefix { $0 == " " })
        var lines: [(text: String, width: Int)] = []
        for word in split(separator: " ") {
            let wordWidth = String(word).shownWidth
            if let last = lines.last, last.width + 1 + wordWidth <= width {
                lines[lines.count - 1] = ("\(last.text) \(word)", last.width + 1 + wordWidth)
            } else {
                let text = lines.isEmpty ? start + word : String(word)
                lines.append((text, wordWidth + (lines.isEmpty ? start.count : indentation)))
            }
        }
        var style = ""
        return lines.enumerated().map { number, line in
            let opened = (number == 0 ? "" : margin) + style + line.text
            style = line.text.openStyle(after: style)
            return style.isEmpty ? opened : opened + "\u{1b}[0m"
        }
    }

    /// Columns of this text without the styles that ``Terminal/paint(_:_:)`` adds.
    var shownWidth: Int { contains("\u{1b}") ? withoutStyles.displayWidth : displayWidth }

    /// The text without the styles and links that a ``Terminal`` adds. Names have no control characters by then.
    var withoutStyles: String {
        replacing(/\u{1b}\[[0-9;]*m|\u{1b}\]8;;[^\u{1b}]*\u{1b}\\/, with: "")
    }

    /// The style that is in effect at the end of the text.
    private func openStyle(after style: String) -> String {
        matches(of: /\u{1b}\[[0-9;]*m/).last.map {
            $0.output == "\u{1b}[0m" ? "" : String($0.output)
        }
            ?? style
    }

    /// Pads the text with spaces to at least `width` columns.
    func padded(to width: Int, _ alignment: TextAlignment) -> String {
        let padding = String(repeating: " ", count: max(0, width - displayWidth))
        return alignment == .leading ? self + padding : padding + self
    }
}

/// The alignment of a column.
enum TextAlignment {
    case leading, trailing
}

extension Sequence<Character> {
    /// How many leading characters fit into `width` columns.
    fileprivate func countFitting(_ width: Int) -> Int {
        var used = 0
        return prefix { character in
            used += character.displayWidth
            return used <= width
        }.count
    }
}

extension Unicode.Scalar {
    fileprivate var displayWidth: Int {
        if value < 0x300 { return 1 }
        switch properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: break
        }
        if (0x1160...0x11ff).contains(value) { return 0 }  // vowels and finals of Hangul syllables
        if properties.isEmojiPresentation { return 2 }
        return Self.wideRanges.contains { $0.contains(value) } ? 2 : 1
    }

    /// The blocks whose characters are wide or full width, emoji aside.
    private static let wideRanges: [ClosedRange<UInt32>] = [
        0x1100...0x115f, 0x2329...0x232a, 0x2630...0x2637, 0x268a...0x268f, 0x2e80...0x303e,
        0x3041...0x3247, 0x3250...0x33ff, 0x3400...0x4dbf, 0x4dc0...0x4dff, 0x4e00...0xa4cf,
        0xa960...0xa97f,
        0xac00...0xd7a3, 0xf900...0xfaff, 0xfe10...0xfe19, 0xfe30...0xfe6f, 0xff01...0xff60,
        0xffe0...0xffe6, 0x16fe0...0x18d08, 0x1aff0...0x1b2ff, 0x1d300...0x1d37f,
        0x1f200...0x1f2ff, 0x20000...0x3fffd,
    ]
}
