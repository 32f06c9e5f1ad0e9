// The time lost in many stalls as a call tree. Each stall contributes its whole duration, spread over its samples, so
// that the tree's total equals that of `top`.

package import StallModel

/// The root end of a tree.
package enum TreeDirection: Sendable {
    /// From the innermost functions; children are callers.
    case bottomUp
    /// From the outermost functions; children are callees.
    case topDown
}

/// Selects the frames and stacks of a tree.
package struct TreeSelection: Sendable {
    /// Include only stacks with a function that matches one of these; empty: all stacks.
    package var focus: [NamePattern] = []
    /// Exclude stacks with a function that matches one of these.
    package var ignore: [NamePattern] = []
    package var frames = Frames.relevant

    package enum Frames: String, CaseIterable, Sendable {
        /// All but run-loop, thunk, runtime and agent frames.
        case relevant
        /// Only app frames.
        case app
        case all
    }

    package init() {}
}

/// Matches function names on the command line: a substring, or a glob for the whole name if it has wildcards.
package struct NamePattern: Hashable, Sendable {
    private let text: String
    private let glob: Glob?

    package init(_ text: String) {
        self.text = text
        glob = text.contains { "*?".contains($0) } ? Glob(text) : nil
    }

    package func fits(_ name: String) -> Bool { glob?.matches(name) ?? name.contains(text) }
}

/// A call tree with the time spent under each call.
package struct CallTree: Sendable {
    package struct Node: Hashable, Sendable {
        /// The function's key, including closures; for a frame without a name, its location.
        package var function: String
        package var image: String?
        package var frameClass: FrameClass
        package var parent: Int?
        package var depth: Int
        package var time: Duration
        /// The number of stalls that contain it.
        package var count: Int
        package var children: [Int] = []
    }

    /// Parents before children.
    package private(set) var nodes: [Node] = []
    /// Sorted by time, largest first; so are the children of every node.
    package private(set) var roots: [Int] = []
    package private(set) var total = Duration.zero
    package private(set) var stallCount = 0
    /// The time of stalls, or parts of stalls, without a stack.
    package private(set) var withoutStack = Duration.zero

    /// Whether there were no stalls at all, with or without stacks.
    package private(set) var isSelectionEmpty = false

    private struct Edge: Hashable {
        var parent: Int32
        var function: Int
    }

    private struct Function: Hashable {
        var name: String
        var owner: String
    }

    private var edges: [Edge: Int32] = [:]
    private var functions: [Function: Int] = [:]
    /// The nodes on the path of a stack; nil for a stack that was not selected.
    private var paths: [Path: [Int32]?] = [:]

    private struct Path: Hashable {
        var stack: Int64
        var executable: BuildID?
    }

    /// Builds the tree of the stalls.
    ///
    /// - Parameter frames: The frames of the stalls' stacks, innermost first.
    ///
    /// **Cost:** each distinct stack is classified once; a stall with known stacks costs one integer per frame.
    package init(
        _ stalls: StackSets, frames: [Int64: [Frame]], direction: TreeDirection,
        selection: TreeSelection = TreeSelection(), rules: GroupingRules = .builtIn
    ) {
        var times: [Duration] = []
        var counts: [Int] = []
        var lastEntry: [Int] = []
        var classified = ClassifiedFrames()
        for (number, entry) in stalls.entries.enumerated() {
            guard !entry.stacks.isEmpty else {
                if selection.focus.isEmpty { addWithoutStack(entry) }
                continue
            }
            var isSeen = false
            for (stack, time) in zip(entry.stacks, entry.times) {
                let place = Path(stack: stack, executable: entry.executable)
                if paths[place] == nil {
                    let stack = (frames[stack] ?? []).map {
                        classified.classify($0, executable: entry.executable, rules)
                    }
                    paths[place] = .some(path(of: stack, direction, selection))
                    times += Array(repeating: .zero, count: nodes.count - times.count)
                    counts += Array(repeating: 0, count: nodes.count - counts.count)
                    lastEntry += Array(repeating: -1, count: nodes.count - lastEntry.count)
                }
                guard let path = paths[place]! else { continue }
                total += time
                isSeen = true
                if path.isEmpty { withoutStack += time }
                for node in path {
                    times[Int(node)] += time
                    guard lastEntry[Int(node)] != number else { continue }
                    lastEntry[Int(node)] = number
                    counts[Int(node)] += entry.count
                }
            }
            if isSeen { stallCount += entry.count }
        }
        for index in nodes.indices {
            nodes[index].time = times[index]
            nodes[index].count = counts[index]
        }
        sortChildren()
        (edges, functions, paths) = ([:], [:], [:])
    }

    /// Builds the tree of the stalls that a filter selects.
    package init(
        of store: any QueryableStore, _ filter: ReportFilter, direction: TreeDirection,
        selection: TreeSelection = TreeSelection(), rules: GroupingRules
    ) throws {
        let stalls = try store.stackSets(filter)
        self.init(
            stalls, frames: try store.frames(ofStacks: Set(stalls.entries.lazy.flatMap(\.stacks))),
            direction: direction, selection: selection, rules: rules)
        isSelectionEmpty = stalls.entries.isEmpty
    }

    private mutating func addWithoutStack(_ entry: StackSets.Entry) {
        stallCount += entry.count
        total += entry.timeWithoutStack
        withoutStack += entry.timeWithoutStack
    }

    /// The nodes on the path of a stack, created where missing; nil if it is not selected.
    private mutating func path(
        of stack: [ClassifiedFrame], _ direction: TreeDirection, _ selection: TreeSelection
    ) -> [Int32]? {
        func contains(_ patterns: [NamePattern]) -> Bool {
            stack.contains { frame in patterns.contains { frame.isMeant(by: $0) } }
        }
        guard selection.focus.isEmpty || contains(selection.focus),
            selection.ignore.isEmpty || !contains(selection.ignore)
        else { return nil }
        let shown =
            switch selection.frames {
            case .relevant: stack.callout.filter(\.isRelevant)
            case .app: stack.callout.filter(\.counts)
            case .all: stack
            }
        var path: [Int32] = []
        var parent: Int32 = -1
        var last: Function?
        for frame in direction == .bottomUp ? shown : shown.reversed() {
            let function = Function(
                name: frame.key.role == .function && frame.isNamed
                    ? frame.key.text : frame.frame.title, owner: frame.owner)
            guard function != last else { continue }  // a function that calls itself is one step
            last = function
            parent = node(function, frame, under: parent)
            path.append(parent)
        }
        return path
    }

    private mutating func node(
        _ function: Function, _ frame: ClassifiedFrame, under parent: Int32
    ) -> Int32 {
        let number = functions[function] ?? functions.count
        functions[function] = number
        let edge = Edge(parent: parent, function: number)
        if let node = edges[edge] { return node }
        let node = Int32(nodes.count)
        edges[edge] = node
        nodes.append(
            Node(
                function: function.name, image: frame.frame.imageName, frameClass: frame.frameClass,
                parent: parent < 0 ? nil : Int(parent),
                depth: parent < 0 ? 0 : nodes[Int(parent)].depth + 1, time: .zero, count: 0))
        if parent >= 0 { nodes[Int(parent)].children.append(Int(node)) }
        return node
    }

    private mutating func sortChildren() {
        let nodes = nodes
        func isHeavier(_ left: Int, _ right: Int) -> Bool {
            (nodes[right].time, nodes[left].function, left) < (
                nodes[left].time, nodes[right].function, right
            )
        }
        roots = nodes.indices.filter { nodes[$0].parent == nil }.sorted(by: isHeavier)
        for index in nodes.indices where nodes[index].children.count > 1 {
            self.nodes[index].children.sort(by: isHeavier)
        }
    }
}

extension ClassifiedFrame {
    fileprivate func isMeant(by pattern: NamePattern) -> Bool {
        pattern.fits(key.text) || pattern.fits(frame.title)
    }

    fileprivate var isNamed: Bool { frame.function != nil || frame.rawName != nil }

    /// Run-loop and thunk frames are the same on every stack.
    fileprivate var isRelevant: Bool {
        switch frameClass {
        case .app, .merged, .wait, .allocator, .system: true
        case .base: isKept || isEntryPoint
        case .thunk, .runtime, .monitor, .kernel, .skipped: isKept
        }
    }
}
