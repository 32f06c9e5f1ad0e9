// Columns that line up. The last column takes what is left of the width; nothing here knows what it shows.

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
        /// Additions that follow the text for as long as they fit.
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
    var rows: [[Cell]] = []
    /// The last column never gets narrower than this, however narrow the terminal.
    static let narrowestLastColumn = 24

    /// The title line and one line a row, without line ends.
    func lines(for terminal: Terminal) -> [String] {
        let titles = columns.map { Cell($0.title, style: .faint) }
        let fixed = columns.indices.dropLast().map { column in
            ([titles] + rows).map { $0[column].text.displayWidth }.max() ?? 0
        }
        let left = terminal.columns.map { columns in
            max(Self.narrowestLastColumn, columns - fixed.reduce(0) { $0 + $1 + Self.gap.count })
        }
        return ([titles] + rows).map { row in
            let cells = row.indices.map { column in
                let cell = row[column]
                guard column < fixed.count else { return cell.fitted(to: left, on: terminal) }
                let padded = cell.text.padded(to: fixed[column], columns[column].alignment)
                return terminal.paint(padded, cell.style)
            }
            return cells.joined(separator: Self.gap)
        }
    }

    private static let gap = "  "
}

extension Table.Cell {
    /// The text, cut in the middle when it is too wide, and as many additions as fit after it.
    fileprivate func fitted(to width: Int?, on terminal: Terminal) -> String {
        guard let width else { return terminal.paint(text, style) + additions.joined() }
        var result = text.truncatedInMiddle(to: width)
        var used = result.displayWidth
        result = terminal.paint(result, style)
        for addition in additions {
            used += addition.displayWidth
            guard used <= width else { break }
            result += terminal.paint(addition, .faint)
        }
        return result
    }
}
