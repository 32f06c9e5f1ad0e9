// `tree` as data and for people.

internal import StallAnalysis
internal import StallModel

/// The part of a tree that is large enough to be shown.
struct ShownTree {
    let tree: CallTree
    let minShare: Double
    /// The nodes that are shown, every one after its parent, siblings by weight.
    private(set) var order: [Int] = []
    /// The functions that are too small to be shown, those below them not counted.
    private(set) var hiddenCount = 0

    init(_ tree: CallTree, minShare: Double, depth: Int?) {
        self.tree = tree
        self.minShare = minShare
        // A stack of our own: a tree may be as deep as any call stack was.
        var waiting = Array(tree.roots.reversed())
        while let index = waiting.popLast() {
            let node = tree.nodes[index]
            guard node.time / tree.total >= minShare, tree.total > .zero else {
                hiddenCount += 1
                continue
            }
            order.append(index)
            if node.depth + 1 < depth ?? .max { waiting += node.children.reversed() }
        }
    }

    func isShown(_ index: Int) -> Bool {
        tree.total > .zero && tree.nodes[index].time / tree.total >= minShare
    }

    var rows: [TreeRow] {
        let numbers = Dictionary(uniqueKeysWithValues: order.enumerated().map { ($1, $0 + 1) })
        return order.map { index in
            let node = tree.nodes[index]
            return TreeRow(
                node: numbers[index]!, parent: node.parent.flatMap { numbers[$0] },
                depth: node.depth, function: node.function, image: node.image,
                class: node.frameClass.rawValue, totalMs: node.time.milliseconds,
                share: node.time / tree.total, count: node.count)
        }
    }
}

/// One call of a tree, as data: the shape of `tree --json`. Scripts depend on the names.
struct TreeRow: Encodable {
    let schema = "stallctl.tree/1"
    /// From 1, in the order of the rows.
    var node: Int
    @Nullable var parent: Int?
    var depth: Int
    var function: String
    @Nullable var image: String?
    var `class`: String
    var totalMs: Double
    /// Of the time of the whole tree, 0 to 1.
    var share: Double
    /// The stalls that it was seen in.
    var count: Int
}

/// `tree` for people.
struct TreeView {
    var tree: ShownTree
    /// Stands before every function that is not the first of its stack.
    var arrow: String
    var terminal: Terminal

    var lines: [String] {
        let whole = tree.tree
        guard whole.stallCount > 0 else { return ["No stalls."] }
        var lines = ["\(counted(whole.stallCount, "stall")), \(whole.total.compact) lost", ""]
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
            // Where calls do not branch they stay in one column: stacks are deep and terminals narrow.
            var isChain = false
            var level = 0
            if let parent = node.parent {
                let siblings = tree.tree.nodes[parent].children.filter(tree.isShown)
                isChain = siblings.count == 1 && tree.tree.nodes[parent].time == node.time
                let isBelowRoot = tree.tree.nodes[parent].parent == nil
                level = (indentation[parent] ?? 0) + (isChain && !isBelowRoot ? 0 : 1)
            }
            indentation[index] = level
            let prefix = String(repeating: "  ", count: level) + (level > 0 ? arrow : "")
            let style: TextStyle? = isChain ? .faint : nil
            return [
                .init(node.time.compact, style: isChain ? .faint : .strong),
                .init(percent(node.time, of: tree.tree.total), style: style),
                .init("\(node.count)", style: style),
                .init(prefix + node.function, style: node.frameClass == .app ? .strong : nil),
                .init(node.image ?? "", style: .faint),
            ]
        }
        return Table(
            columns: [
                .init("TIME", .trailing), .init("SHARE", .trailing, spare: 1),
                .init("STALLS", .trailing, spare: 2), .init("FUNCTION"),
                .init("IMAGE", spare: 3),
            ], flexibleColumn: 3, rows: rows)
    }
}
