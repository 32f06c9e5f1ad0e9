// The visible part of a call tree.

internal import StallModel

/// The part of a tree above the minimum share.
package struct ShownTree {
    package let tree: CallTree
    package let minShare: Double
    /// The visible nodes, each after its parent, siblings by weight.
    package private(set) var order: [Int] = []
    /// The hidden functions, not counting those below them.
    package private(set) var hiddenCount = 0

    package init(_ tree: CallTree, minShare: Double, depth: Int?) {
        self.tree = tree
        self.minShare = minShare
        // An explicit stack instead of recursion: the tree may be as deep as the deepest call stack.
        var waiting = Array(tree.roots.reversed())
        while let index = waiting.popLast() {
            let node = tree.nodes[index]
            guard node.time / tree.total >= minShare, tree.total > .zero else {
                hiddenCount += 1
                continue
            }
            order.append(index)
            if node.depth + 1 < depth ?? .max { waiting += tree.children(of: index).reversed() }
        }
    }

    package func isShown(_ index: Int) -> Bool {
        tree.total > .zero && tree.nodes[index].time / tree.total >= minShare
    }
}
