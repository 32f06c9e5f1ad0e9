// Performed blocks: any thread posts without a lock, the loop's thread drains.
//
//     post:   take a free node (one compare-exchange), fill it, push it on `incoming` (one more)
//     drain:  take all of `incoming` at once, turn it round, run what the mode allows, give the nodes back in bulk
//
// Nodes live in segments that are never freed while the queue lives, and are named by index. So a thread may read
// a node that another one has just taken: the tag in the head, which changes with every pop, tells it to try again.

internal import Synchronization

/// The modes a block may run in. Most blocks have one, which is kept inline.
struct BlockModes {
    let first: LoopMode
    let others: [LoopMode]?

    @inline(__always) func allow(_ mode: LoopMode, isCommon: Bool) -> Bool {
        if first == mode || (isCommon && first == .common) { return true }
        guard let others else { return false }
        return others.contains(mode) || (isCommon && others.contains(.common))
    }
}

/// A first-in, first-out queue of blocks with many producers and one consumer.
final class BlockQueue: @unchecked Sendable {
    /// A node, in memory of its own layout: the link, which a thread may read that has lost a race for the node, and the
    /// content, which only the node's owner touches. As fields of one struct, to write one would be to access both.
    fileprivate struct Node {
        static let stride = 8 + MemoryLayout<Content>.stride
        let address: UnsafeMutableRawPointer

        /// The number of the next node; 0 at the end.
        var next: UnsafeMutablePointer<Atomic<UInt32>> {
            address.assumingMemoryBound(to: Atomic<UInt32>.self)
        }
        var content: UnsafeMutablePointer<Content> {
            (address + 8).assumingMemoryBound(to: Content.self)
        }

        func initialize() {
            address.bindMemory(to: Atomic<UInt32>.self, capacity: 1).initialize(to: Atomic(0))
            (address + 8).bindMemory(to: Content.self, capacity: 1).initialize(to: Content())
        }
    }

    fileprivate struct Content {
        var modes = BlockModes(first: .default, others: nil)
        var body: (() -> Void)?
    }

    /// A list of nodes that only the loop's thread holds, in order.
    struct Batch {
        fileprivate var head: UInt32 = 0
        fileprivate var tail: UInt32 = 0
        fileprivate(set) var count = 0
        var isEmpty: Bool { head == 0 }
    }

    private static let firstSegment = 64
    private static let segmentCount = 26

    // Heads: 63...32 a tag that counts pops, 31...0 the index of the first node plus one.
    private let incoming = Atomic<UInt64>(0)
    private let free = Atomic<UInt64>(0)
    private let segments: UnsafeMutablePointer<UnsafeMutableRawPointer?>
    private let segmentsInUse = Locked(0)
    /// Blocks of earlier drains whose mode did not run. The loop's thread alone.
    @exclusivity(unchecked) private var deferred = Batch()

    init() {
        segments = .allocate(capacity: Self.segmentCount)
        segments.initialize(repeating: nil, count: Self.segmentCount)
    }

    deinit {
        for segment in 0..<Self.segmentCount {
            guard let nodes = segments[segment] else { continue }
            for index in 0..<Self.firstSegment << segment {
                Node(address: nodes + index * Node.stride).content.deinitialize(count: 1)
            }
            nodes.deallocate()
        }
        segments.deallocate()
    }

    /// Adds a block at the end. Any thread.
    func post(modes: BlockModes, _ body: @escaping () -> Void) {
        let index = takeFree()
        let node = node(index)
        node.content.pointee = Content(modes: modes, body: body)
        push(from: index, to: node, on: incoming)
    }

    /// Whether there may be a block to run. The loop's thread.
    @inline(__always) var isEmpty: Bool {
        incoming.load(ordering: .sequentiallyConsistent) == 0 && deferred.isEmpty
    }

    /// Takes everything that was posted so far, oldest first. The loop's thread.
    func takeAll() -> Batch {
        var batch = deferred
        deferred = Batch()
        append(
            reversing: UInt32(truncatingIfNeeded: incoming.exchange(0, ordering: .acquiring)),
            to: &batch)
        return batch
    }

    /// Takes the first block of the batch that `mode` allows. Those before it move to `kept`, its own node to `spent`.
    func next(
        in batch: inout Batch, mode: LoopMode, isCommon: Bool, kept: inout Batch, spent: inout Batch
    ) -> (() -> Void)? {
        while batch.head != 0 {
            let index = batch.head
            let node = node(index)
            batch.head = node.next.pointee.load(ordering: .relaxed)
            if node.content.pointee.modes.allow(mode, isCommon: isCommon) {
                append(index, to: &spent)
                return node.content.pointee.body.take()
            }
            append(index, to: &kept)
        }
        return nil
    }

    /// Gives nodes back, all at once: one change of a word that every poster changes too.
    func free(_ spent: inout Batch) {
        guard !spent.isEmpty else { return }
        push(from: spent.head, to: node(spent.tail), on: free)
        spent = Batch()
    }

    /// Lets go of blocks without running them.
    func drop(_ batch: consuming Batch) {
        while batch.head != 0 {
            let node = node(batch.head)
            batch.head = node.next.pointee.load(ordering: .relaxed)
            node.content.pointee.body = nil
        }
    }

    /// Puts back what a drain did not run, ahead of what a nested drain left.
    func putBack(_ kept: Batch) {
        guard !kept.isEmpty else { return }
        if deferred.isEmpty {
            deferred = kept
        } else {
            node(kept.tail).next.pointee.store(deferred.head, ordering: .relaxed)
            deferred.head = kept.head
        }
    }

    /// Whether a block waits that `mode` allows. The loop's thread.
    func holdsBlock(for mode: LoopMode, isCommon: Bool) -> Bool {
        deferred = takeAll()
        var index = deferred.head
        while index != 0 {
            if node(index).content.pointee.modes.allow(mode, isCommon: isCommon) { return true }
            index = node(index).next.pointee.load(ordering: .relaxed)
        }
        return false
    }

    private func append(_ index: UInt32, to batch: inout Batch) {
        node(index).next.pointee.store(0, ordering: .relaxed)
        if batch.head == 0 {
            batch.head = index
        } else {
            node(batch.tail).next.pointee.store(index, ordering: .relaxed)
        }
        batch.tail = index
        batch.count += 1
    }

    /// Appends a chain that was pushed last-in first, turning it round.
    private func append(reversing first: UInt32, to batch: inout Batch) {
        guard first != 0 else { return }
        var (index, reversed) = (first, UInt32(0))
        while index != 0 {
            let next = node(index).next.pointee.load(ordering: .relaxed)
            node(index).next.pointee.store(reversed, ordering: .relaxed)
            (reversed, index) = (index, next)
        }
        if batch.head == 0 {
            batch.head = reversed
        } else {
            node(batch.tail).next.pointee.store(reversed, ordering: .relaxed)
        }
        batch.tail = first
    }

    /// The node with this number; numbers count from 1.
    @inline(__always) private func node(_ number: UInt32) -> Node {
        let shifted = Int(number) - 1 + Self.firstSegment
        let segment = Int.bitWidth - 1 - shifted.leadingZeroBitCount - 6
        return Node(
            address: segments[segment]! + (shifted - Self.firstSegment << segment) * Node.stride)
    }

    /// Pushes the chain from `first` to `last` on a stack.
    @inline(__always) private func push(
        from first: UInt32, to last: Node, on head: borrowing Atomic<UInt64>
    ) {
        var current = head.load(ordering: .relaxed)
        while true {
            last.next.pointee.store(UInt32(truncatingIfNeeded: current), ordering: .relaxed)
            let desired = current & ~0xffff_ffff | UInt64(first)
            let (done, now) = head.weakCompareExchange(
                expected: current, desired: desired, successOrdering: .sequentiallyConsistent,
                failureOrdering: .relaxed)
            if done { return }
            current = now
        }
    }

    @inline(__always) private func takeFree() -> UInt32 {
        var current = free.load(ordering: .acquiring)
        while true {
            let number = UInt32(truncatingIfNeeded: current)
            guard number != 0 else {
                grow()
                current = free.load(ordering: .acquiring)
                continue
            }
            let next = node(number).next.pointee.load(ordering: .relaxed)
            let desired = (current >> 32 &+ 1) << 32 | UInt64(next)
            let (done, now) = free.weakCompareExchange(
                expected: current, desired: desired, successOrdering: .acquiring,
                failureOrdering: .acquiring)
            if done { return number }
            current = now
        }
    }

    /// Doubles the nodes. The queue keeps its high-water mark.
    @inline(never) private func grow() {
        segmentsInUse.withLock { used in
            guard UInt32(truncatingIfNeeded: free.load(ordering: .acquiring)) == 0 else { return }
            precondition(used < Self.segmentCount, "a run loop holds at most four billion blocks")
            let count = Self.firstSegment << used
            let nodes = UnsafeMutableRawPointer.allocate(
                byteCount: count * Node.stride, alignment: 64)
            let first = UInt32(count - Self.firstSegment + 1)
            for index in 0..<count {
                let node = Node(address: nodes + index * Node.stride)
                node.initialize()
                let isLast = index == count - 1
                node.next.pointee.store(isLast ? 0 : first + UInt32(index) + 1, ordering: .relaxed)
            }
            segments[used] = nodes
            used += 1
            let last = Node(address: nodes + (count - 1) * Node.stride)
            push(from: first, to: last, on: free)
        }
    }
}
