// The call trees that profilers print: each call with the number of samples that it is in. A stack's own samples are
// those of its innermost call less those of the calls below it.

internal import StallModel

/// A tree of calls.
struct SampledTree {
    /// More are a fault of the report.
    static let nodeLimit = 1 << 19

    private struct Node {
        var parent: Int?
        var frame: SampledFrame
        /// How many calls it and those above it are.
        var depth: Int
        var count: Int64
        /// The sum of the counts below it.
        var countBelow: Int64 = 0

        var ownCount: Int64 { count > countBelow ? count - countBelow : 0 }
    }

    private struct Key: Hashable {
        var parent: Int?
        var frame: SampledFrame
    }

    private var nodes: [Node] = []
    private var known: [Key: Int] = [:]

    var isEmpty: Bool { nodes.isEmpty }
    var nodeCount: Int { nodes.count }

    /// All samples.
    var count: Int64 {
        nodes.reduce(0) { $1.parent == nil ? $0.addingSaturated($1.count) : $0 }
    }

    /// Adds a call, or its samples to those of the same call below the same one.
    ///
    /// - Parameter count: Not negative.
    /// - Returns: Its number, for the calls below it.
    mutating func add(_ frame: SampledFrame, below parent: Int?, count: Int64) -> Int {
        if let parent { nodes[parent].countBelow.addSaturated(count) }
        let key = Key(parent: parent, frame: frame)
        if let number = known[key] {
            nodes[number].count.addSaturated(count)
            return number
        }
        known[key] = nodes.count
        nodes.append(
            Node(
                parent: parent, frame: frame, depth: parent.map { nodes[$0].depth + 1 } ?? 1,
                count: count))
        return nodes.count - 1
    }

    // MARK: Its stacks

    /// The limits of the store: the innermost calls of a stack, and stacks of a thread.
    static let frameLimit = 1000
    private static let stackLimit = 4096
    /// Frames of a report: stacks share most of theirs, which a deep tree makes quadratic.
    static let reportFrameLimit = 1 << 20

    /// The stacks with samples of their own. Of too many, those with the most samples.
    ///
    /// - Parameters:
    ///   - isRootInnermost: The calls below a call are its callers.
    ///   - room: How many frames more the report may have; the heaviest stack is there in any case.
    func samples(
        in images: SortedImages, isRootInnermost: Bool = false, room: inout Int
    ) -> [ForeignSample] {
        var own = nodes.indices.filter { nodes[$0].ownCount > 0 }
        if own.count > Self.stackLimit {
            own.sort { (nodes[$0].ownCount, $1) > (nodes[$1].ownCount, $0) }
            own = own.prefix(Self.stackLimit).sorted()
        }
        let heaviest = own.max { (nodes[$0].ownCount, $1) < (nodes[$1].ownCount, $0) }
        return own.compactMap { number in
            let size = min(nodes[number].depth, Self.frameLimit)
            guard size <= room || number == heaviest else { return nil }
            room = max(0, room - size)
            return sample(number, images, isRootInnermost)
        }
    }

    private func sample(
        _ number: Int, _ images: SortedImages, _ isRootInnermost: Bool
    ) -> ForeignSample {
        var frames: [SampledFrame] = []
        var next: Int? = number
        var skipped = isRootInnermost ? max(0, nodes[number].depth - Self.frameLimit) : 0
        while let number = next, frames.count < Self.frameLimit {
            if skipped > 0 { skipped -= 1 } else { frames.append(nodes[number].frame) }
            next = nodes[number].parent
        }
        if isRootInnermost { frames.reverse() }
        var sample = ForeignSample(count: nodes[number].ownCount)
        sample.isTruncated =
            nodes[number].depth > Self.frameLimit || frames.contains { $0.isTruncation }
        sample.frames = frames.filter { !$0.isTruncation }.enumerated().map {
            $1.frame(in: images, isInnermost: $0 == 0)
        }
        return sample
    }
}

/// The calls that are open while a tree is read line by line: a call is below the last one that is indented less.
struct SampledTreeCursor {
    private(set) var tree = SampledTree()
    private var open: [(column: Int, number: Int)] = []

    /// - Parameter column: Where its number of samples is in the line.
    mutating func add(_ frame: SampledFrame, column: Int, count: Int64) {
        while let last = open.last, last.column >= column { open.removeLast() }
        open.append((column, tree.add(frame, below: open.last?.number, count: count)))
    }
}

/// A call in a tree, as far as a line describes it.
struct SampledFrame: Hashable {
    var function: String?
    /// The name of the binary, and its UUID where the call has it.
    var image: String?
    var buildID: BuildID?
    /// From the load address of the binary.
    var imageOffset: UInt64?
    var address: UInt64?
    var file: String?
    var line: Int?
    /// Stands for calls that are missing.
    var isTruncation = false

    func frame(in images: SortedImages, isInnermost: Bool) -> ForeignFrame {
        var frame = ForeignFrame()
        if let address, let found = images.image(at: address) {
            frame = ForeignFrame(address: address, in: images, kind: .returnAddress)
            frame.buildID = buildID ?? found.buildID
        } else {
            frame.image = image
            frame.buildID = buildID
            frame.offset = imageOffset
            // Nameless calls differ by their addresses only.
            if frame.offset == nil, function == nil || image == nil { frame.offset = address }
        }
        frame.function = function
        (frame.file, frame.line) = (file, line)
        frame.kind = isInnermost ? .interrupted : .returnAddress
        return frame
    }
}
