// `tree` as text and CSV.

internal import StallAnalysis
internal import StallFormats
internal import StallModel

extension TreeRow {
    static let csvHeader = [
        "node", "parent", "depth", "function", "image", "class", "total_ms", "share", "count",
    ]

    var csvFields: [CSVWriter.Field] {
        [
            .plain("\(node)"), .plain(parent.map(String.init) ?? ""), .plain("\(depth)"),
            .text(function), .text(image ?? ""), .plain(`class`), .plain("\(totalMs)"),
            .plain("\(share)"), .plain("\(count)"),
        ]
    }
}

/// `tree` as text.
struct TreeView {
    var tree: ShownTree
    /// Printed before every function but the first of its stack.
    var arrow: String
    var words = RankedWords()
    var terminal: Terminal

    var lines: [String] {
        let whole = tree.tree
        guard whole.stallCount > 0 else { return ["No \(words.noun)s."] }
        var lines = [counted(whole.stallCount, words.noun) + words.time(whole.total), ""]
        lines += table.lines(for: terminal)
        var left: [String] = []
        if tree.hiddenCount > 0 {
            left.append("\(counted(tree.hiddenCount, "smaller call")): --min-share 0")
        }
        if whole.withoutStack > .zero {
            left.append("\(whole.withoutStack.compact) without a stack to show")
        }
        return lines + left.map { terminal.paint($0, .faint) }
    }

    private var table: Table {
        var indentation: [Int: Int] = [:]
        let rows = tree.order.map { index -> [Table.Cell] in
            let node = tree.tree.nodes[index]
            // Calls that do not branch are not indented further: stacks are deep and terminals narrow.
            var isChain = false
            var level = 0
            if let parent = node.parent {
                let siblings = tree.tree.children(of: parent).filter(tree.isShown)
                isChain = siblings.count == 1 && tree.tree.nodes[parent].time == node.time
                let isBelowRoot = tree.tree.nodes[parent].parent == nil
                level = (indentation[parent] ?? 0) + (isChain && !isBelowRoot ? 0 : 1)
            }
            indentation[index] = level
            let prefix = String(repeating: "  ", count: level) + (level > 0 ? arrow : "")
            let style: TextStyle? = isChain ? .faint : nil
            return [
                .init(words.sum(node.time), style: isChain ? .faint : .strong),
                .init(percent(node.time, of: tree.tree.total), style: style),
                .init("\(node.count)", style: style),
                .init(prefix + node.function, style: node.frameClass == .app ? .strong : nil),
                .init(node.image ?? "", style: .faint),
            ]
        }
        return Table(
            columns: [
                .init("TIME", .trailing), .init("SHARE", .trailing, spare: 1),
                .init(words.isOfStalls ? "STALLS" : "COUNT", .trailing, spare: 2),
                .init("FUNCTION"),
                .init("IMAGE", spare: 3),
            ], flexibleColumn: 3, othersFirst: 16, rows: rows)
    }
}
