// Text for issue trackers: CommonMark with GitHub's tables. Names come from other people's programs, so that nothing in
// them may become markup.

internal import StallModel

extension String {
    /// The text as it stands in a line of Markdown.
    var markdown: String {
        var escaped = ""
        for character in printable {
            // Others are markup only at the beginning of a line, which a cell or a sentence never is.
            if #"\`*_[]<>#!|~&@"#.contains(character) { escaped.append("\\") }
            escaped.append(character)
        }
        return escaped
    }
}

/// Lines of text as they are, in a fence that is longer than any in them.
func markdownFence(_ lines: [String]) -> [String] {
    let longest =
        lines.map { line in
            line.split(whereSeparator: { $0 != "`" }).map(\.count).max() ?? 0
        }.max() ?? 0
    let fence = String(repeating: "`", count: max(3, longest + 1))
    return [fence + "text"] + lines + [fence]
}

extension Table {
    /// The table of GitHub's Markdown. Columns with nothing in them are left out.
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
