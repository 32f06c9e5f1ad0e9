// Blocks whose mode has not run yet, by mode: a drain touches those that its own mode allows, however many wait for
// others.

/// A block that a drain has found and could not run.
final class KeptBlock {
    /// When it was posted: the drain that found it, and its number there. Blocks of an earlier drain were posted
    /// earlier.
    struct Position: Comparable {
        var drain: UInt64
        var number: UInt64

        /// Before every block.
        static let start = Position(drain: 0, number: 0)

        static func < (left: Self, right: Self) -> Bool {
            (left.drain, left.number) < (right.drain, right.number)
        }
    }

    let position: Position
    /// The modes it may run in. It is in the queue of each.
    let modes: [LoopMode]
    /// Nil once it has run, or is about to.
    private var body: (() -> Void)?

    init(_ block: consuming Block, at position: Position) {
        self.position = position
        var modes = [block.mode]
        for mode in block.others ?? [] where !modes.contains(mode) { modes.append(mode) }
        self.modes = modes
        body = block.body
    }

    var isTaken: Bool { body == nil }

    func take() -> (() -> Void)? { body.take() }
}

/// Kept blocks in the order they were posted.
struct KeptQueue {
    private var blocks: [KeptBlock] = []
    private var head = 0
    /// How many of them have run in another of their modes.
    private var takenCount = 0

    var isEmpty: Bool { head == blocks.count }
    /// The blocks that have not run.
    var waiting: some Sequence<KeptBlock> { blocks[head...].lazy.filter { !$0.isTaken } }

    /// The first block behind a position that has not run. That is the head, unless the mode became a common one when
    /// the drain had passed some.
    func first(after position: KeptBlock.Position) -> KeptBlock? {
        blocks[head...].first { position < $0.position && !$0.isTaken }
    }

    /// Takes a block out that runs now, and all before it that have run: at once when it is the head, later when it is
    /// not.
    mutating func remove(_ block: KeptBlock) {
        if blocks[head] !== block { return noteTaken() }
        repeat { head += 1 } while head < blocks.count && blocks[head].isTaken
        guard head >= 32, head * 2 > blocks.count else { return }
        blocks.removeFirst(head)
        head = 0
    }

    mutating func append(_ later: ArraySlice<KeptBlock>) { blocks.append(contentsOf: later) }

    mutating func append(_ later: KeptQueue) {
        blocks.append(contentsOf: later.blocks[later.head...])
    }

    /// One of its blocks runs in another mode. The room that such blocks take stays below that of the others.
    mutating func noteTaken() {
        takenCount += 1
        guard takenCount > 32, takenCount * 2 > blocks.count - head else { return }
        blocks = blocks[head...].filter { !$0.isTaken }
        (head, takenCount) = (0, 0)
    }
}

/// The queues of all modes. A drain takes all of them: a run that is nested in one of its blocks finds what was posted
/// since, as in CFRunLoop.
struct KeptBlocks {
    private var queues: [LoopMode: KeptQueue] = [:]

    var isEmpty: Bool { queues.isEmpty }

    /// Whether a block may wait that `mode` allows.
    @inline(__always) func mayHoldBlock(for mode: LoopMode, isCommon: Bool) -> Bool {
        !queues.isEmpty && hasQueue(for: mode, isCommon: isCommon)
    }

    @inline(never) private func hasQueue(for mode: LoopMode, isCommon: Bool) -> Bool {
        queues[mode] != nil || (isCommon && queues[.common] != nil)
    }

    /// Whether a block waits that `mode` allows.
    func holdsBlock(for mode: LoopMode, isCommon: Bool) -> Bool {
        func isWaiting(in queue: KeptQueue?) -> Bool {
            queue?.waiting.contains { _ in true } ?? false
        }
        return isWaiting(in: queues[mode]) || (isCommon && isWaiting(in: queues[.common]))
    }

    /// Takes the oldest block behind `passed` that `mode` allows.
    mutating func takeFirst(
        for mode: LoopMode, isCommon: Bool, after passed: inout KeptBlock.Position
    ) -> (() -> Void)? {
        let own = queues[mode]?.first(after: passed)
        let common = isCommon ? queues[.common]?.first(after: passed) : nil
        guard let next = earlier(own, common), let body = next.take() else { return nil }
        passed = next.position
        for mode in next.modes {
            queues[mode]?.remove(next)
            if queues[mode]?.isEmpty == true { queues[mode] = nil }
        }
        return body
    }

    private func earlier(_ left: KeptBlock?, _ right: KeptBlock?) -> KeptBlock? {
        guard let left, let right else { return left ?? right }
        return right.position < left.position ? right : left
    }

    /// Adds what a drain could not run, in the order it was posted.
    mutating func append(_ kept: [KeptBlock]) {
        var start = 0
        while start < kept.count {
            // Neighbours mostly have the same modes: they go in together.
            var end = start + 1
            while end < kept.count, kept[end].modes == kept[start].modes { end += 1 }
            for mode in kept[start].modes {
                queues[mode, default: KeptQueue()].append(kept[start..<end])
            }
            start = end
        }
    }

    /// Adds what nested drains have kept.
    mutating func append(_ later: KeptBlocks) {
        for (mode, queue) in later.queues { queues[mode, default: KeptQueue()].append(queue) }
    }

    /// How many wait in each mode; one for several modes counts in each.
    func countByMode() -> [LoopMode: Int] {
        queues.mapValues { $0.waiting.reduce(0) { count, _ in count + 1 } }
    }
}
