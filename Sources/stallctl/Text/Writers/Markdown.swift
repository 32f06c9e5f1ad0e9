// Markdown for issue trackers: CommonMark with GitHub's tables. Names come from other programs and are escaped.

internal import StallModel

extension String {
    /// The text, escaped for use within a line of Markdown.
    var markdown: String {
        var escaped = ""
        for character in printable {
            // Other characters are markup only at the beginning of a line.
            if #"\`*_[]<>#!|~&@"#.contains(character) { escaped.append("\\") }
            escaped.append(character)
        }
        return escaped
    }
}

/// The lines in a code fence longer than any fence in them.
func markdownFence(_ lines: [String]) -> [String] {
    let longest =
        lines.map { line in
            line.split(whereSeparator: { $0 != "`" }).map(\.count).max() ?? 0
        }.max() ?? 0
    let fence = String(repeating: "`", count: max(3, longest + 1))
    return [fence + "text"] + lines + [fence]
}

extension Table {
    /// The table in GitHub's Markdown. Empty columns are omitted.
    var markdownLines: [String] {
        let filled = columns.indices.filter { column in rows.contains { !$0[column].text.isEmpty } }
        func line(_ cells: [String]) -> String { "| " + cells.joined(separator: " | ") + " |" }
        let rule = filled.map { columns[$0].alignment == .trailing ? "--:" : "---" }
        return [line(filled.map { columns[$0].title.markdown }), line(rule)]
            + rows.map { row in
                line(
                    filled.map { column in
                        let cell = row[column]
                        return ([cell.text] + cell.additions).joined().markdown
                    })
            }
    }
}
