// The part of a tree of calls that is shown.

internal import StallModel

/// The part of a tree that is large enough to be shown.
package struct ShownTree {
    package let tree: CallTree
    package let minShare: Double
    /// The nodes that are shown, every one after its parent, siblings by weight.
    package private(set) var order: [Int] = []
    /// The functions that are too small to be shown, those below them not counted.
    package private(set) var hiddenCount = 0

    package init(_ tree: CallTree, minShare: Double, depth: Int?) {
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

    package func isShown(_ index: Int) -> Bool {
        tree.total > .zero && tree.nodes[index].time / tree.total >= minShare
    }
}
