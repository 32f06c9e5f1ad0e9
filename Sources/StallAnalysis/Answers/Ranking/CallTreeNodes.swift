// The nodes of a call tree, 32 bytes each: a million reports have hundreds of thousands of them, of which few are shown.

internal import StallModel

package struct CallTreeNodes: RandomAccessCollection, Sendable {
    private struct Compact {
        /// Index into `labels`.
        var label: Int32
        /// Negative for a root.
        var parent: Int32
        var depth: Int32
        // Sums end at the largest number.
        var time_ns: Int64 = 0
        var count = 0
    }

    private struct Label {
        var function: String
        var image: String?
        var frameClass: FrameClass
        /// The module, which distinguishes functions of one name and image.
        var owner: String

        /// Orders rows of one name by their facts: the order does not depend on which stack came first.
        var rest: (String, String, String) { (image ?? "", owner, frameClass.rawValue) }
    }

    private var nodes: [Compact] = []
    private var labels: [Label] = []
    /// The children of all nodes, those of one node behind each other.
    private var children: [Int32] = []
    /// Where the children of each node begin.
    private var firstChild: [Int32] = []

    init() {}

    package var startIndex: Int { 0 }
    package var endIndex: Int { nodes.count }

    package subscript(index: Int) -> CallTree.Node {
        let (node, label) = (nodes[index], labels[Int(nodes[index].label)])
        return CallTree.Node(
            function: label.function, image: label.image, frameClass: label.frameClass,
            parent: node.parent < 0 ? nil : Int(node.parent), depth: Int(node.depth),
            time: .nanoseconds(node.time_ns), count: node.count)
    }

    /// By time, largest first.
    func children(of node: Int) -> some RandomAccessCollection<Int> {
        children[Int(firstChild[node])..<Int(firstChild[node + 1])].lazy.map { Int($0) }
    }

    /// Adds what nodes of a function say.
    ///
    /// - Returns: Its number.
    mutating func addLabel(_ function: String, _ frame: ClassifiedFrame) -> Int32 {
        labels.append(
            Label(
                function: function, image: frame.frame.imageName, frameClass: frame.frameClass,
                owner: frame.owner))
        return Int32(labels.count - 1)
    }

    /// - Returns: The new node.
    mutating func append(_ label: Int32, under parent: Int32) -> Int32 {
        nodes.append(
            Compact(
                label: label, parent: parent,
                depth: parent < 0 ? 0 : nodes[Int(parent)].depth + 1))
        return Int32(nodes.count - 1)
    }

    mutating func add(_ time_ns: Int64, count: Int, to node: Int) {
        nodes[node].time_ns.addSaturated(time_ns)
        nodes[node].count.addSaturated(count)
    }

    /// Lists the children of every node, the largest first.
    ///
    /// - Returns: The roots in that order.
    mutating func sortChildren() -> [Int] {
        var counts = Array(repeating: Int32(0), count: nodes.count + 1)
        for node in nodes where node.parent >= 0 { counts[Int(node.parent)] += 1 }
        firstChild = Array(repeating: 0, count: nodes.count + 1)
        for index in nodes.indices { firstChild[index + 1] = firstChild[index] + counts[index] }
        children = Array(repeating: 0, count: Int(firstChild[nodes.count]))
        var next = firstChild
        for (index, node) in nodes.enumerated() where node.parent >= 0 {
            children[Int(next[Int(node.parent)])] = Int32(index)
            next[Int(node.parent)] += 1
        }
        for index in nodes.indices where firstChild[index + 1] - firstChild[index] > 1 {
            let range = Int(firstChild[index])..<Int(firstChild[index + 1])
            let sorted = children[range].sorted { isHeavier(Int($0), Int($1)) }
            children.replaceSubrange(range, with: sorted)
        }
        return nodes.indices.filter { nodes[$0].parent < 0 }.sorted(by: isHeavier)
    }

    private func isHeavier(_ left: Int, _ right: Int) -> Bool {
        let (one, other) = (nodes[left], nodes[right])
        if one.time_ns != other.time_ns { return one.time_ns > other.time_ns }
        let (label, otherLabel) = (labels[Int(one.label)], labels[Int(other.label)])
        return label.function != otherLabel.function
            ? label.function < otherLabel.function : label.rest < otherLabel.rest
    }
}
