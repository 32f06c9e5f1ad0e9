// Text tables that fit the terminal: the flexible column gets the remaining width, others shrink, and optional columns
// are dropped on a narrow terminal.

/// Rows of cells under titles.
struct Table {
    /// A column's title and alignment.
    struct Column {
        var title: String
        var alignment: TextAlignment
        /// The order in which columns are dropped for lack of width, highest first; nil: never.
        var spare: Int?

        init(_ title: String, _ alignment: TextAlignment = .leading, spare: Int? = nil) {
            self.title = title
            self.alignment = alignment
            self.spare = spare
        }
    }

    /// The content of one column in one row.
    struct Cell {
        var text: String
        /// Appended to the text as long as they fit.
        var additions: [String] = []
        /// Whether the first of them gets a line of its own where it does not fit whole.
        var isFirstWhole = false
        var style: TextStyle?
        /// Where the text leads to, on a terminal with links.
        var link: String?

        /// A cell with `text`, control characters escaped.
        init(
            _ text: String, additions: [String] = [], isFirstWhole: Bool = false,
            style: TextStyle? = nil, link: String? = nil
        ) {
            self.text = text.printable
            self.additions = additions.map(\.printable)
            self.isFirstWhole = isFirstWhole
            self.style = style
            self.link = link
        }
    }

    var columns: [Column]
    /// The column that is truncated on a narrow terminal; by default the last.
    var flexibleColumn: Int
    /// If set, the flexible column is truncated only after the other texts have been, to this width.
    var othersFirst: Int?
    var rows: [[Cell]] = []

    init(
        columns: [Column], flexibleColumn: Int? = nil, othersFirst: Int? = nil, rows: [[Cell]] = []
    ) {
        self.columns = columns
        self.flexibleColumn = flexibleColumn ?? columns.count - 1
        self.othersFirst = othersFirst
        self.rows = rows
    }

    /// The flexible column stays readable down to the first width, others to the second, that of a time with its year.
    private static let (narrowest, leastOther) = (20, 24)
    private var narrowestOther: Int { othersFirst ?? Self.leastOther }
    /// Below that the flexible column is truncated last, and never below this.
    private static let least = 12
    private static let gap = "  "

    /// The title and one line per row, or two with an addition that is to be read whole, without newlines and trailing
    /// spaces. Empty columns are omitted, and optional ones if they do not fit.
    func lines(for terminal: Terminal) -> [String] {
        var table = showing(filled)
        while let available = terminal.columns, table.narrowestWidth > available,
            let spared = table.columns.indices.filter({ table.columns[$0].spare != nil })
                .max(by: { table.columns[$0].spare! < table.columns[$1].spare! })
        {
            table = table.showing(table.columns.indices.filter { $0 != spared })
        }
        return table.allLines(for: terminal)
    }

    /// The table with only these columns.
    private func showing(_ shown: [Int]) -> Table {
        Table(
            columns: shown.map { columns[$0] },
            flexibleColumn: shown.firstIndex(of: flexibleColumn), othersFirst: othersFirst,
            rows: rows.map { row in shown.map { row[$0] } })
    }

    private var titledRows: [[Cell]] { [columns.map { Cell($0.title, style: .faint) }] + rows }

    /// The width at which nothing is truncated.
    var naturalWidth: Int {
        let widths = showing(filled).naturalWidths
        return widths.reduce(Self.gap.count * max(0, widths.count - 1), +)
    }

    private var filled: [Int] {
        columns.indices.filter { column in rows.contains { !$0[column].text.isEmpty } }
    }

    private var naturalWidths: [Int] {
        let rows = titledRows
        return columns.indices.map { column in rows.map { $0[column].width }.max() ?? 0 }
    }

    /// With every column at its narrowest readable width.
    private var narrowestWidth: Int {
        naturalWidths.enumerated().reduce(Self.gap.count * (columns.count - 1)) { sum, column in
            let limit =
                column.offset == flexibleColumn
                ? Self.narrowest : isText(column.offset) ? narrowestOther : .max
            return sum + min(column.element, limit)
        }
    }

    private func isText(_ column: Int) -> Bool { columns[column].alignment == .leading }

    private func allLines(for terminal: Terminal) -> [String] {
        let widths = widths(on: terminal)
        return titledRows.flatMap { row in
            var row = row
            let below =
                row.isEmpty
                ? nil : takeAddition(of: &row[flexibleColumn], width: widths[flexibleColumn])
            let line = row.indices.map { column in
                let width = isText(column) ? widths[column] : nil
                let (text, used) = row[column].fitted(to: width, on: terminal)
                let padding = String(repeating: " ", count: max(0, widths[column] - used))
                switch columns[column].alignment {
                case .trailing: return padding + text
                case .leading: return column == columns.count - 1 ? text : text + padding
                }
            }.joined(separator: Self.gap).trimmingTrailingSpaces
            guard let below, let available = terminal.columns else { return [line] }
            let start = widths.prefix(flexibleColumn).reduce(0) { $0 + $1 + Self.gap.count }
            let text = below.truncatedInMiddle(to: max(Self.least, available - Self.gap.count))
            let indentation = max(Self.gap.count, min(start, available - text.displayWidth))
            return [
                line, String(repeating: " ", count: indentation) + terminal.paint(text, .faint),
            ]
        }
    }

    /// The addition that is to be read whole, if there is no room for that in the cell. Text behind it is moved with
    /// it.
    private func takeAddition(of cell: inout Cell, width: Int) -> String? {
        guard cell.isFirstWhole, let first = cell.additions.first,
            width < cell.text.displayWidth + first.displayWidth
        else { return nil }
        cell.additions = []
        return String(first.drop { $0 == " " })
    }

    private func widths(on terminal: Terminal) -> [Int] {
        var widths = naturalWidths
        guard let available = terminal.columns, !widths.isEmpty else { return widths }
        var excess = widths.reduce(Self.gap.count * (columns.count - 1), +) - available
        func shrink(_ column: Int, to least: Int) {
            let cut = max(0, min(excess, widths[column] - least))
            widths[column] -= cut
            excess -= cut
        }
        if othersFirst == nil { shrink(flexibleColumn, to: Self.narrowest) }
        for column in columns.indices.filter(isText).sorted(by: { widths[$0] > widths[$1] }) {
            shrink(column, to: column == flexibleColumn ? .max : narrowestOther)
        }
        shrink(flexibleColumn, to: Self.narrowest)
        shrink(flexibleColumn, to: Self.least)
        return widths
    }
}

extension Table.Cell {
    /// With all additions.
    fileprivate var width: Int { additions.reduce(text.displayWidth) { $0 + $1.displayWidth } }

    /// A name truncated below this width is useless.
    private static let narrowestAddition = 16

    /// The text and its additions, truncated in the middle if too wide, and the columns used.
    fileprivate func fitted(to width: Int?, on terminal: Terminal) -> (text: String, used: Int) {
        let width = width ?? .max
        let cut = text.truncatedInMiddle(to: width)
        var (result, used) = (
            terminal.link(terminal.paint(cut, style), to: link), cut.displayWidth
        )
        for addition in additions {
            // The first that does not fit ends them: its callers would look like the callee's.
            guard width - used >= min(Self.narrowestAddition, addition.displayWidth) else { break }
            let cut = addition.truncatedInMiddle(to: width - used)
            result += terminal.paint(cut, .faint)
            used += cut.displayWidth
        }
        return (result, used)
    }
}

extension String {
    /// The text without trailing spaces.
    var trimmingTrailingSpaces: String {
        String(self[..<(lastIndex { $0 != " " }.map(index(after:)) ?? startIndex)])
    }
}
