// Columns that line up, one of them in what is left of the width. Nothing here knows what it shows.

/// Rows of cells under titles.
struct Table {
    /// One column's title and the side its cells share.
    struct Column {
        var title: String
        var alignment: TextAlignment

        init(_ title: String, _ alignment: TextAlignment = .leading) {
            self.title = title
            self.alignment = alignment
        }
    }

    /// What stands in one row of one column.
    struct Cell {
        var text: String
        /// Additions that follow the text for as long as there is room.
        var additions: [String] = []
        var style: TextStyle?

        /// A cell that shows `text`, with control characters made visible.
        init(_ text: String, additions: [String] = [], style: TextStyle? = nil) {
            self.text = text.printable
            self.additions = additions.map(\.printable)
            self.style = style
        }
    }

    var columns: [Column]
    /// The column that is cut when the terminal is narrow; the last one unless it is set.
    var flexibleColumn: Int
    var rows: [[Cell]] = []

    init(columns: [Column], flexibleColumn: Int? = nil, rows: [[Cell]] = []) {
        self.columns = columns
        self.flexibleColumn = flexibleColumn ?? columns.count - 1
        self.rows = rows
    }

    /// The flexible column never gets narrower than this, however narrow the terminal.
    private static let narrowest = 24
    private static let gap = "  "

    /// The title line and one line a row, without line ends and trailing spaces. Columns with
    /// nothing in them are left out.
    func lines(for terminal: Terminal) -> [String] {
        let shown = columns.indices.filter { column in rows.contains { !$0[column].text.isEmpty } }
        let table = Table(
            columns: shown.map { columns[$0] },
            flexibleColumn: shown.firstIndex(of: flexibleColumn),
            rows: rows.map { row in shown.map { row[$0] } })
        return table.allLines(for: terminal)
    }

    private func allLines(for terminal: Terminal) -> [String] {
        let all = [columns.map { Cell($0.title, style: .faint) }] + rows
        let widths = widths(of: all, on: terminal)
        return all.map { row in
            row.indices.map { column in
                let width = column == flexibleColumn ? widths[column] : nil
                let (text, used) = row[column].fitted(to: width, on: terminal)
                let padding = String(repeating: " ", count: max(0, widths[column] - used))
                switch columns[column].alignment {
                case .trailing: return padding + text
                case .leading: return column == columns.count - 1 ? text : text + padding
                }
            }.joined(separator: Self.gap).trimmingTrailingSpaces
        }
    }

    private func widths(of rows: [[Cell]], on terminal: Terminal) -> [Int] {
        var widths = columns.indices.map { column in rows.map { $0[column].width }.max() ?? 0 }
        guard let available = terminal.columns, !widths.isEmpty else { return widths }
        let others =
            widths.reduce(0, +) - widths[flexibleColumn] + Self.gap.count * (columns.count - 1)
        let left = max(Self.narrowest, available - others)
        widths[flexibleColumn] = min(widths[flexibleColumn], left)
        return widths
    }
}

extension Table.Cell {
    /// With all additions.
    fileprivate var width: Int { additions.reduce(text.displayWidth) { $0 + $1.displayWidth } }

    /// What is cut shorter than this says nothing any more.
    private static let narrowestAddition = 16

    /// The text and its additions, cut in the middle where too wide, and the columns that takes.
    fileprivate func fitted(to width: Int?, on terminal: Terminal) -> (text: String, used: Int) {
        let width = width ?? .max
        let cut = text.truncatedInMiddle(to: width)
        var (result, used) = (terminal.paint(cut, style), cut.displayWidth)
        for addition in additions where width - used >= Self.narrowestAddition {
            let cut = addition.truncatedInMiddle(to: width - used)
            result += terminal.paint(cut, .faint)
            used += cut.displayWidth
        }
        return (result, used)
    }
}

extension String {
    /// The text without the spaces at its end.
    var trimmingTrailingSpaces: String {
        String(self[..<(lastIndex { $0 != " " }.map(index(after:)) ?? startIndex)])
    }
}
