// The time lost in many stalls as a call tree. Each stall contributes its whole duration, spread over its samples, so
// that the tree's total equals that of `top`.

package import StallModel
package import StallQuery

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
    }

    /// Parents before children.
    package private(set) var nodes = CallTreeNodes()
    /// Sorted by time, largest first; so are the children of every node.
    package private(set) var roots: [Int] = []
    package private(set) var total = Duration.zero
    package private(set) var stallCount = 0
    /// The time of stalls, or parts of stalls, without a stack.
    package private(set) var withoutStack = Duration.zero

    /// Whether there were no stalls at all, with or without stacks.
    package private(set) var isSelectionEmpty = false

    /// A path in one program.
    private struct Path {
        /// Its nodes, in the list of those of all paths; nil where it is not selected.
        var steps: Range<Int>?
        /// The time under it.
        var time_ns: Int64 = 0
        /// The number of stalls with no other stack. Those of several may share nodes, and each counts once.
        var count = 0
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
        var classified = ClassifiedFrames(rules: rules)
        let stacks = stalls.stacks
        self.init(
            stalls, direction: direction, selection: selection, pathCount: stacks.count,
            path: { $0 }
        ) { stack, executable in
            (frames[stacks[Int(stack)]] ?? []).map {
                classified.classify($0, executable: executable)
            }
        }
    }

    /// Builds the tree of the stalls that a filter selects.
    package init(
        of store: any QueryableStore, _ filter: ReportFilter, direction: TreeDirection,
        selection: TreeSelection = TreeSelection(), rules: GroupingRules
    ) throws {
        let (stalls, classifier) = try store.consistently {
            let stalls = try store.stackSets(filter)
            return try (
                stalls,
                StackClassifier(
                    store, stacks: stalls.stacks, executables: stalls.executables, rules: rules)
            )
        }
        self.init(
            stalls, direction: direction, selection: selection,
            pathCount: classifier.pathCount, path: classifier.path(ofStack:)
        ) { stack, executable in
            classifier.frames(ofStack: stack, executable: executable, isPlain: true)
        }
        isSelectionEmpty = stalls.isEmpty
    }

    /// - Parameters:
    ///   - path: The number of a stack's path: stacks of one path have the same frames.
    ///   - stack: The classified frames of a stack in a program. Called once for each path.
    private init(
        _ stalls: StackSets, direction: TreeDirection, selection: TreeSelection, pathCount: Int,
        path: (Int32) -> Int32, stack: (Int32, BuildID?) -> [ClassifiedFrame]
    ) {
        var builder = CallTreeBuilder(direction: direction, selection: selection)
        var paths: [Path] = []
        // By program and number of a path; negative before its first stack.
        var indices = stalls.executables.map { _ in Array(repeating: Int32(-1), count: pathCount) }
        // The nodes of all paths, one behind the other.
        var steps: [Int32] = []
        func index(_ number: Int32, _ executable: Int) -> Int {
            let path = Int(path(number))
            let known = indices[executable][path]
            guard known < 0 else { return Int(known) }
            indices[executable][path] = Int32(paths.count)
            let first = steps.count
            let isSelected = builder.addPath(
                of: stack(number, stalls.executables[executable]), to: &nodes, &steps)
            paths.append(Path(steps: isSelected ? first..<steps.count : nil))
            return paths.count - 1
        }
        // By node, the last stall with several stacks that was counted.
        var lastEntry: [Int32] = []
        for number in 0..<stalls.count {
            let entry = stalls[number]
            guard !entry.stacks.isEmpty else {
                if selection.focus.isEmpty { addWithoutStack(entry) }
                continue
            }
            var isSeen = false
            for (stackNumber, time_ns) in zip(entry.stacks, entry.times_ns) {
                let path = index(stackNumber, entry.executable)
                guard let range = paths[path].steps else { continue }
                total += .nanoseconds(time_ns)
                isSeen = true
                if range.isEmpty { withoutStack += .nanoseconds(time_ns) }
                paths[path].time_ns.addSaturated(time_ns)
                guard entry.stacks.count > 1 else {
                    paths[path].count.addSaturated(entry.count)
                    continue
                }
                lastEntry += repeatElement(-1, count: nodes.count - lastEntry.count)
                for node in steps[range] where lastEntry[Int(node)] != Int32(number) {
                    lastEntry[Int(node)] = Int32(number)
                    nodes.add(0, count: entry.count, to: Int(node))
                }
            }
            if isSeen { stallCount += entry.count }
        }
        for path in paths {
            for node in steps[path.steps ?? 0..<0] {
                nodes.add(path.time_ns, count: path.count, to: Int(node))
            }
        }
        roots = nodes.sortChildren()
    }

    package func children(of node: Int) -> some RandomAccessCollection<Int> {
        nodes.children(of: node)
    }

    private mutating func addWithoutStack(_ entry: StackSets.Entry) {
        stallCount += entry.count
        total += .nanoseconds(entry.timeWithoutStack_ns)
        withoutStack += .nanoseconds(entry.timeWithoutStack_ns)
    }
}

/// Turns stacks into paths of nodes.
private struct CallTreeBuilder {
    let direction: TreeDirection
    let selection: TreeSelection
    private var edges: [UInt64: Int32] = [:]
    private var functions: [Function: Int32] = [:]
    /// Frames that were on a path before: comparing names is most of the work. They are held, so that no other frame gets
    /// the address of one.
    private var known: [ObjectIdentifier: Known] = [:]

    /// The key of a row: the function and its module. The code of one module may be in several images, and is of the app
    /// in one program and not in another.
    private struct Function: Hashable {
        var name: String
        var owner: String
        var image: String?
        var frameClass: FrameClass
    }

    private struct Known {
        var frame: ClassifiedFrame
        var function: Int32
        var label: Int32
        var isShown: Bool
    }

    init(direction: TreeDirection, selection: TreeSelection) {
        self.direction = direction
        self.selection = selection
    }

    /// Adds the nodes on the path of a stack to `path`, created where missing.
    ///
    /// - Returns: Whether the stack is selected.
    mutating func addPath(
        of stack: [ClassifiedFrame], to nodes: inout CallTreeNodes, _ path: inout [Int32]
    ) -> Bool {
        func contains(_ patterns: [NamePattern]) -> Bool {
            stack.contains { frame in patterns.contains { frame.isMeant(by: $0) } }
        }
        guard selection.focus.isEmpty || contains(selection.focus),
            selection.ignore.isEmpty || !contains(selection.ignore)
        else { return false }
        let shown = selection.frames == .all ? stack[...] : stack.callout[...]
        var parent: Int32 = -1
        var last: Int32 = -1
        func add(_ frame: ClassifiedFrame) {
            let known = know(frame, &nodes)
            // A function that calls itself is one step.
            guard known.isShown, known.function != last else { return }
            last = known.function
            parent = node(known, under: parent, &nodes)
            path.append(parent)
        }
        if direction == .bottomUp {
            for frame in shown { add(frame) }
        } else {
            for frame in shown.reversed() { add(frame) }
        }
        return true
    }

    private mutating func know(_ frame: ClassifiedFrame, _ nodes: inout CallTreeNodes) -> Known {
        if let known = known[ObjectIdentifier(frame)] { return known }
        let function = Function(
            name: frame.nodeName, owner: frame.owner, image: frame.frame.imageName,
            frameClass: frame.frameClass)
        let number = functions[function] ?? Int32(functions.count)
        functions[function] = number
        let isShown =
            switch selection.frames {
            case .relevant: frame.isRelevant
            case .app: frame.counts
            case .all: true
            }
        let known = Known(
            frame: frame, function: number,
            label: nodes.addLabel(function.name, frame),
            isShown: isShown)
        self.known[ObjectIdentifier(frame)] = known
        return known
    }

    private mutating func node(
        _ known: Known, under parent: Int32, _ nodes: inout CallTreeNodes
    ) -> Int32 {
        let edge =
            UInt64(UInt32(bitPattern: parent)) << 32 | UInt64(UInt32(bitPattern: known.function))
        if let node = edges[edge] { return node }
        let node = nodes.append(known.label, under: parent)
        edges[edge] = node
        return node
    }
}

extension ClassifiedFrame {
    fileprivate func isMeant(by pattern: NamePattern) -> Bool {
        pattern.fits(key.text) || pattern.fits(frame.title)
    }

    fileprivate var nodeName: String {
        let isNamed = frame.function != nil || frame.rawName != nil
        return key.role == .function && isNamed ? key.text : frame.title
    }

    /// Run-loop and thunk frames are the same on every stack.
    fileprivate var isRelevant: Bool {
        switch frameClass {
        case .app, .merged, .wait, .allocator, .system: true
        case .base: isKept || isEntryPoint
        case .thunk, .runtime, .monitor, .kernel, .skipped: isKept
        }
    }
}
