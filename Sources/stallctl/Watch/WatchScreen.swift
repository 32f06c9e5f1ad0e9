// One screen of `top --watch`: exactly as many lines as the window has, none wider than it.

internal import StallAnalysis
internal import StallModel
internal import StallQuery

struct WatchScreen {
    var state: WatchState
    var content: WatchContent
    /// `read at 14:03:22`
    var reading: String
    /// The state of the store; nil if it is as it was.
    var notice: String?
    var terminal: Terminal

    /// How many rows fit below the header and above the footer and the last lines.
    func height(rows: Int) -> Int {
        // As if all rows were visible: the text is never shorter then.
        let status = self.status(content.rows.count, 0).count
        return max(1, rows - content.header.count - footerCount(rows) - status - legend.count)
    }

    /// The footer is left out of a low window.
    private func footerCount(_ rows: Int) -> Int {
        rows - content.header.count - content.footer.count >= 8 ? content.footer.count : 0
    }

    func lines(rows: Int) -> [String] {
        let columns = terminal.columns ?? .max
        let height = self.height(rows: rows)
        let visible = state.visible(in: content)
        let shown = visible.dropFirst(state.view.top).prefix(height)
        var lines = content.header
        for (number, row) in shown.enumerated() {
            let text = content.rows[row]
            guard content.isList else {
                lines.append(text)
                continue
            }
            let isSelected = number + state.view.top == state.view.cursor
            // Reverse video needs the text without other styles, which would end it.
            lines.append(
                isSelected
                    ? terminal.paint("> " + text.withoutStyles, .selected) : "  " + text)
        }
        lines += Array(repeating: "", count: max(0, height - shown.count))
        lines += content.footer.prefix(footerCount(rows))
        let last = (status(visible.count, height) + legend).suffix(rows)
        let space = rows - last.count
        lines = lines.prefix(space) + Array(repeating: "", count: max(0, space - lines.count))
        return lines.map { $0.cut(to: columns) }
            + last.map { terminal.paint($0.truncatedInMiddle(to: columns), .faint) }
    }

    /// The page's name, when the store was read, and the state of the store.
    private func status(_ count: Int, _ height: Int) -> [String] {
        if state.isTyping { return ["/\(state.view.filter.printable)_"] }
        let view = state.view
        var parts: [String] = []
        if content.isList {
            parts.append("\(min(view.cursor + 1, count)) of \(count)")
        } else if count > height {
            parts.append("line \(view.top + 1) of \(count)")
        }
        if !view.filter.isEmpty { parts.append("filter '\(view.filter.printable)'") }
        return filled(parts + [reading] + (notice.map { [$0] } ?? []), "; ")
    }

    /// The keys, with the current choice in brackets, on as many lines as they need.
    private var legend: [String] { filled(keys, "  ") }

    /// The parts on as few lines as they fit.
    private func filled(_ parts: [String], _ separator: String) -> [String] {
        parts.reduce(into: []) { lines, part in
            let longer = (lines.last ?? "") + separator + part
            if !lines.isEmpty, longer.displayWidth <= terminal.columns ?? .max {
                lines[lines.count - 1] = longer
            } else {
                lines.append(part)
            }
        }
    }

    private var keys: [String] {
        if state.isTyping { return ["Enter keep filter", "Esc clear filter"] }
        switch state.page {
        case .groups:
            let orders: [(String, RankingOrder)] = [
                ("t total", .total), ("c count", .count), ("p p95", .p95), ("m max", .max),
                ("r rate", .rate),
            ]
            let sort = orders.map { $0.1 == state.order ? "[\($0.0)]" : $0.0 }
            return [sort.joined(separator: " ")]
                + ["g group: \(state.group.rawValue)", "Enter open", "/ filter", "q quit"]
        case .reports: return ["Enter open", "/ filter", "Esc back", "Q quit"]
        case .report: return ["arrows and PgUp, PgDn scroll", "/ filter", "Esc back", "Q quit"]
        }
    }
}

extension String {
    /// The line, truncated to `width` columns if it is wider; it loses its styles then.
    fileprivate func cut(to width: Int) -> String {
        shownWidth <= width ? self : withoutStyles.truncatedInMiddle(to: width)
    }
}
