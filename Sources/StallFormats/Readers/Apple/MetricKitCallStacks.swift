// The call stacks of a MetricKit diagnostic: trees of addresses with counts of samples. Crashes begin with the innermost
// call, hangs end with it, and some systems differ: the binaries decide where they can.

internal import StallModel

/// The threads of a tree of call stacks.
struct MetricKitCallStacks {
    private(set) var threads: [ForeignThread] = []
    /// The thread that the diagnostic is about, an index in `threads`.
    private(set) var attributed: Int?

    /// The names of binaries that are only in a table, by their UUIDs.
    private var names: [String: String] = [:]

    /// Whether an object holds call stacks, with or without the tree around them.
    static func isTree(_ node: JSONNode) -> Bool {
        let tree = node["callStackTree"] ?? node
        return tree["callStacks"] != nil || tree["callStackThreads"] != nil
    }

    /// Nil with too many frames.
    init?(_ node: JSONNode, isCrash: Bool) {
        let tree = node["callStackTree"] ?? node
        addNames(tree["binaryInfo"])
        let stacks = (tree["callStacks"] ?? tree["callStackThreads"])?.elements ?? []
        var trees: [SampledTree] = []
        var room = SampledTree.nodeLimit
        for stack in stacks {
            guard let tree = self.tree(stack, room) else { return nil }
            room -= tree.nodeCount
            if stack["threadAttributed"]?.isTrue == true, attributed == nil {
                attributed = trees.count
            }
            trees.append(tree)
        }
        let roots = stacks.lazy.compactMap { [self] in
            $0.rootFrames.first.flatMap { isRootInnermost(chain(from: $0)) }
        }
        let beginsInnermost = roots.first ?? isCrash
        var frameRoom = SampledTree.reportFrameLimit
        threads = trees.enumerated().map { number, tree in
            ForeignThread(
                number: Int32(clamping: number),
                samples: tree.samples(
                    in: SortedImages([]), isRootInnermost: beginsInnermost, room: &frameRoom))
        }
    }

    /// A dictionary with UUIDs as keys; Swift's encoder writes it as an array in which keys and values alternate.
    private mutating func addNames(_ table: JSONNode?) {
        guard let table else { return }
        var entries = table.members
        if table.isArray {
            let elements = table.elements
            entries = stride(from: 0, to: elements.count - 1, by: 2).map {
                (elements[$0].text ?? "", elements[$0 + 1])
            }
        }
        for (key, entry) in entries {
            if let name = entry["name"]?.text ?? entry.text { names[key.lowercased()] = name }
        }
    }

    // MARK: Trees

    private func tree(_ stack: JSONNode, _ room: Int) -> SampledTree? {
        var tree = SampledTree()
        var open: [(node: JSONNode, parent: Int?)] = stack.rootFrames.reversed().map { ($0, nil) }
        while let (node, parent) = open.popLast() {
            guard tree.nodeCount < room else { return nil }
            let count = node["sampleCount"]?.integer(Int64.self) ?? 1
            let number = tree.add(frame(node), below: parent, count: max(0, count))
            open += (node["subFrames"]?.elements ?? []).reversed().map { ($0, number) }
        }
        return tree
    }

    private func frame(_ node: JSONNode) -> SampledFrame {
        var frame = SampledFrame()
        let uuid = node["binaryUUID"]?.text
        frame.image = name(node)
        frame.buildID = uuid.flatMap(BuildID.init(uuid:))
        frame.address = node["address"]?.integer(UInt64.self)
        frame.imageOffset = node["offsetIntoBinaryTextSegment"]?.integer(UInt64.self)
        // iOS 14 wrote the load address in its place.
        if let offset = frame.imageOffset, let address = frame.address, offset > 1 << 31,
            offset <= address
        {
            frame.imageOffset = address - offset
        }
        if frame.imageOffset == nil { frame.imageOffset = frame.address }
        // The same call in all samples, wherever its binary was loaded.
        if frame.imageOffset != nil { frame.address = nil }
        return frame
    }

    private func name(_ node: JSONNode) -> String? {
        node["binaryName"]?.text ?? node["binaryUUID"]?.text.flatMap { names[$0.lowercased()] }
    }

    // MARK: Direction

    /// The binaries of the first calls of a tree, from its root.
    private func chain(from root: JSONNode) -> [String] {
        var (chain, next) = ([String](), Optional(root))
        while let node = next {
            chain.append(name(node) ?? "")
            next = node["subFrames"]?.firstElement
        }
        return chain
    }

    /// Nil where the binaries do not decide.
    private func isRootInnermost(_ chain: [String]) -> Bool? {
        guard chain.count > 1, let root = chain.first, let end = chain.last else { return nil }
        if Self.isStart(root) != Self.isStart(end) { return Self.isStart(end) }
        // UIApplicationMain calls GSEventRun, which calls no code of UIKit itself.
        if let events = chain.firstIndex(of: "GraphicsServices") {
            let isBefore = events > 0 && chain[events - 1].hasPrefix("UIKit")
            let isBehind = events + 1 < chain.count && chain[events + 1].hasPrefix("UIKit")
            if isBefore != isBehind { return isBehind }
        }
        if Self.isThreadBase(root) != Self.isThreadBase(end) { return Self.isThreadBase(end) }
        if Self.isKernel(root) != Self.isKernel(end) { return Self.isKernel(root) }
        return nil
    }

    private static func isStart(_ name: String) -> Bool {
        name == "dyld" || name == "libdyld.dylib"
    }
    private static func isThreadBase(_ name: String) -> Bool { name == "libsystem_pthread.dylib" }
    private static func isKernel(_ name: String) -> Bool { name == "libsystem_kernel.dylib" }
}

extension JSONNode {
    /// The outermost, or the innermost, calls of a call stack.
    fileprivate var rootFrames: [JSONNode] {
        (self["callStackRootFrames"] ?? self["rootFrames"])?.elements ?? []
    }

    fileprivate var firstElement: JSONNode? {
        guard isArray, index + 1 < document.next(index) else { return nil }
        return JSONNode(document, index + 1)
    }
}
