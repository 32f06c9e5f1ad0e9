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
    fileprivate struct Node: ~Copyable {
        /// The index of the next node plus one; 0 at the end.
        let next = Atomic<UInt32>(0)
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
    private let segments: UnsafeMutablePointer<UnsafeMutablePointer<Node>?>
    private let segmentsInUse = Mutex(0)
    /// Blocks of earlier drains whose mode did not run. The loop's thread alone.
    @exclusivity(unchecked) private var deferred = Batch()

    init() {
        segments = .allocate(capacity: Self.segmentCount)
        segments.initialize(repeating: nil, count: Self.segmentCount)
    }

    deinit {
        for segment in 0..<Self.segmentCount {
            guard let nodes = segments[segment] else { continue }
            nodes.deinitialize(count: Self.firstSegment << segment)
            nodes.deallocate()
        }
        segments.deallocate()
    }

    /// Adds a block at the end. Any thread.
    func post(modes: BlockModes, _ body: @escaping () -> Void) {
        let index = takeFree()
        let node = node(index)
        node.pointee.modes = modes
        node.pointee.body = body
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
            batch.head = node.pointee.next.load(ordering: .relaxed)
            if node.pointee.modes.allow(mode, isCommon: isCommon) {
                append(index, to: &spent)
                return node.pointee.body.take()
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
            batch.head = node.pointee.next.load(ordering: .relaxed)
            node.pointee.body = nil
        }
    }

    /// Puts back what a drain did not run, ahead of what a nested drain left.
    func putBack(_ kept: Batch) {
        guard !kept.isEmpty else { return }
        if deferred.isEmpty {
            deferred = kept
        } else {
            node(kept.tail).pointee.next.store(deferred.head, ordering: .relaxed)
            deferred.head = kept.head
        }
    }

    /// Whether a block waits that `mode` allows. The loop's thread.
    func holdsBlock(for mode: LoopMode, isCommon: Bool) -> Bool {
        deferred = takeAll()
        var index = deferred.head
        while index != 0 {
            if node(index).pointee.modes.allow(mode, isCommon: isCommon) { return true }
            index = node(index).pointee.next.load(ordering: .relaxed)
        }
        return false
    }

    private func append(_ index: UInt32, to batch: inout Batch) {
        node(index).pointee.next.store(0, ordering: .relaxed)
        if batch.head == 0 {
            batch.head = index
        } else {
            node(batch.tail).pointee.next.store(index, ordering: .relaxed)
        }
        batch.tail = index
        batch.count += 1
    }

    /// Appends a chain that was pushed last-in first, turning it round.
    private func append(reversing first: UInt32, to batch: inout Batch) {
        guard first != 0 else { return }
        var (index, reversed) = (first, UInt32(0))
        while index != 0 {
            let next = node(index).pointee.next.load(ordering: .relaxed)
            node(index).pointee.next.store(reversed, ordering: .relaxed)
            (reversed, index) = (index, next)
        }
        if batch.head == 0 {
            batch.head = reversed
        } else {
            node(batch.tail).pointee.next.store(reversed, ordering: .relaxed)
        }
        batch.tail = first
    }

    /// The node with this number; numbers count from 1.
    @inline(__always) private func node(_ number: UInt32) -> UnsafeMutablePointer<Node> {
        let shifted = Int(number) - 1 + Self.firstSegment
        let segment = Int.bitWidth - 1 - shifted.leadingZeroBitCount - 6
        return segments[segment]! + (shifted - Self.firstSegment << segment)
    }

    /// Pushes the chain from `first` to `last` on a stack.
    @inline(__always) private func push(
        from first: UInt32, to last: UnsafeMutablePointer<Node>, on head: borrowing Atomic<UInt64>
    ) {
        var current = head.load(ordering: .relaxed)
        while true {
            last.pointee.next.store(UInt32(truncatingIfNeeded: current), ordering: .relaxed)
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
            let next = node(number).pointee.next.load(ordering: .relaxed)
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
            let nodes = UnsafeMutablePointer<Node>.allocate(capacity: count)
            for index in 0..<count { (nodes + index).initialize(to: Node()) }
            let first = UInt32(count - Self.firstSegment + 1)
            for index in 0..<count - 1 {
                nodes[index].next.store(first + UInt32(index) + 1, ordering: .relaxed)
            }
            segments[used] = nodes
            used += 1
            push(from: first, to: nodes + (count - 1), on: free)
        }
    }
}
