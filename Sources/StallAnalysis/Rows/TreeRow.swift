// One call of a tree as JSON: the schema of `tree --json`.

internal import StallModel
package import StallQuery

/// One call of a tree, as JSON: the schema of `tree --json`. Key names are a contract.
package struct TreeRow: Encodable {
    package let schema = "stallctl.tree/1"
    /// From 1, in the order of the rows.
    package var node: Int
    @Nullable package var parent: Int?
    package var depth: Int
    package var function: String
    @Nullable package var image: String?
    package var `class`: String
    package var totalMs: Double
    /// Share of the time of the whole tree, 0 to 1.
    package var share: Double
    /// The number of stalls that contain it.
    package var count: Int
}

extension ShownTree {
    package var rows: [TreeRow] {
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
