// The calls under which stalls lost their time, for drawing: small enough for a file that is handed over, and of two sides where
// two are compared. Calls that are left out for size are kept as time, so that every row adds up.

internal import StallModel

/// A function as a picture shows it.
package struct PicturedFrame: Hashable, Sendable {
    package enum Kind: String, Sendable {
        case app = "a"
        case wait = "w"
        case system = "s"
    }

    package var function: String
    package var image: String?
    package var kind: Kind

    package init(function: String, image: String?, kind: Kind) {
        self.function = function
        self.image = image
        self.kind = kind
    }

    package init(_ frame: ClassifiedFrame) {
        self.init(
            function: frame.frame.title, image: frame.frame.imageName,
            kind: Kind(frame.frameClass, counts: frame.counts))
    }
}

extension PicturedFrame.Kind {
    init(_ frameClass: FrameClass, counts: Bool) {
        self = counts ? .app : frameClass == .wait ? .wait : .system
    }
}

package struct FlameTree: Sendable {
    package struct Node: Sendable {
        package var frame: PicturedFrame
        package var depth: Int
        /// The time under it, on each side.
        package var times: [Duration]
        fileprivate var parent: Int?
        fileprivate var children: [Int] = []
    }

    /// Each before what it called, the heaviest first; one by one the rows of a picture.
    package private(set) var nodes: [Node] = []
    /// On each side.
    package private(set) var totals: [Duration]

    private struct Key: Hashable {
        var parent: Int
        var frame: PicturedFrame
    }

    private var keys: [Key: Int] = [:]
    private let sideCount: Int

    /// Deeper calls are their callers' own time: a picture of thousands of rows is none.
    private static let largestDepth = 300

    package static let rest = PicturedFrame(function: "…", image: nil, kind: .system)
    package static let noStack = PicturedFrame(function: "[no stack]", image: nil, kind: .system)

    package init(sideCount: Int = 1) {
        self.sideCount = sideCount
        totals = Array(repeating: .zero, count: sideCount)
    }

    /// Adds a tree that begins with the outermost functions.
    mutating func add(_ tree: CallTree, side: Int) {
        totals[side] += tree.total
        func add(_ index: Int, under parent: Int) {
            let node = tree.nodes[index]
            let frame = PicturedFrame(
                function: node.function, image: node.image,
                kind: .init(node.frameClass, counts: node.frameClass == .app))
            let own = number(of: frame, under: parent)
            nodes[own].times[side] += node.time
            guard nodes[own].depth < Self.largestDepth else { return }
            for child in tree.children(of: index) { add(child, under: own) }
        }
        for root in tree.roots { add(root, under: -1) }
        addRoot(Self.noStack, tree.withoutStack, side: side)
    }

    /// Adds time of which no stack is drawn.
    mutating func addRoot(_ frame: PicturedFrame, _ time: Duration, side: Int) {
        guard time > .zero else { return }
        nodes[number(of: frame, under: -1)].times[side] += time
    }

    mutating func addTotal(_ time: Duration, side: Int) { totals[side] += time }

    private mutating func number(of frame: PicturedFrame, under parent: Int) -> Int {
        let key = Key(parent: parent, frame: frame)
        if let known = keys[key] { return known }
        let number = nodes.count
        keys[key] = number
        nodes.append(
            Node(
                frame: frame, depth: parent < 0 ? 0 : nodes[parent].depth + 1,
                times: Array(repeating: .zero, count: sideCount),
                parent: parent < 0 ? nil : parent))
        if parent >= 0 { nodes[parent].children.append(number) }
        return number
    }

    /// The largest nodes in the order of drawing; calls that are left out are one node beside those that are not.
    func drawn(limit: Int) -> FlameTree {
        func weight(_ index: Int) -> Duration { nodes[index].times.reduce(.zero, +) }
        let weights = nodes.indices.map(weight)
        let order = nodes.indices.sorted {
            (weights[$1], $0) < (weights[$0], $1)
        }
        // A caller weighs at least as much as what it called, and is earlier: it is kept with it.
        let kept = Set(order.prefix(limit))
        var drawn = FlameTree(sideCount: sideCount)
        drawn.totals = totals
        func draw(_ indexes: [Int], under parent: Int) {
            let heaviest = indexes.filter(kept.contains).sorted {
                (weights[$1], nodes[$0].frame.function, $0) < (
                    weights[$0], nodes[$1].frame.function, $1
                )
            }
            for index in heaviest {
                let own = drawn.number(of: nodes[index].frame, under: parent)
                for side in 0..<sideCount {
                    drawn.nodes[own].times[side] += nodes[index].times[side]
                }
                draw(nodes[index].children, under: own)
            }
            let others = indexes.filter { !kept.contains($0) }
            guard !others.isEmpty else { return }
            let rest = drawn.number(of: Self.rest, under: parent)
            for index in others {
                for side in 0..<sideCount {
                    drawn.nodes[rest].times[side] += nodes[index].times[side]
                }
            }
        }
        draw(nodes.indices.filter { nodes[$0].parent == nil }, under: -1)
        drawn.keys = [:]
        return drawn
    }
}
