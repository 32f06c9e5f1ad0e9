// Performed blocks: any thread posts without a lock, the loop's thread drains.
//
//     post:   claim the next slot (one atomic addition), fill it, mark it filled
//     drain:  note where the end is now; run the blocks before it that the mode allows, keep the others
//
// Slots lie side by side in segments, so that both sides walk through memory in order and nobody hands nodes back. A
// claimed slot belongs to one thread until it is marked filled. Whoever needs it meanwhile waits, as for a lock: the
// loop for the block, and other posters, once a segment, for the one that adds the next.

internal import Glibc
internal import Synchronization

/// A block and the modes it may run in. Most blocks have one mode, which is kept inline.
struct Block {
    var others: [LoopMode]?
    var body: () -> Void
    var mode: LoopMode

    @inline(__always) func isAllowed(in mode: LoopMode, isCommon: Bool) -> Bool {
        if self.mode == mode || (isCommon && self.mode == .common) { return true }
        guard let others else { return false }
        return others.contains(mode) || (isCommon && others.contains(.common))
    }
}

/// A first-in, first-out queue of blocks with many producers and one consumer.
final class BlockQueue: @unchecked Sendable {
    /// What one drain may run: blocks that earlier drains kept, then slots.
    struct Batch {
        fileprivate var kept: BlockList
        fileprivate var position: BlockPosition
        fileprivate let end: BlockPosition
    }

    /// The next slot to claim; behind the last one of its segment until the next segment is there. On a cache line of
    /// its own.
    private let end: UnsafeMutablePointer<Atomic<UInt>>
    /// The position of the first slot that no drain has taken. Changed by the loop's thread, with the loop's lock held.
    @exclusivity(unchecked) private var begin: BlockPosition
    /// Blocks of earlier drains whose mode did not run. Guarded like `begin`.
    @exclusivity(unchecked) private var kept = BlockList()
    /// Segments for the next threads that need one. A flood leaves many; later drains free them one by one.
    private let spares = Locked<[BlockSegment]>([])
    private let hasSurplus = Atomic<Bool>(false)
    private static let surplus = 32

    init() {
        begin = BlockPosition(startOf: BlockSegment())
        end = UnsafeMutableRawPointer.allocate(byteCount: 128, alignment: 128)
            .bindMemory(to: Atomic<UInt>.self, capacity: 1)
        end.initialize(to: Atomic(begin.word))
    }

    deinit {
        drop(takeAllAsList())
        begin.segment.deallocate()
        for segment in spares.withLock({ $0 }) { segment.deallocate() }
        end.deallocate()
    }

    /// Adds a block at the end. Any thread.
    @inline(__always) func post(_ block: consuming Block) {
        let position = claim()
        position.block.initialize(to: block)
        position.isFilled.pointee.store(1, ordering: .releasing)
    }

    /// Whether there may be a block to run. The loop's thread.
    @inline(__always) var isEmpty: Bool {
        end.pointee.load(ordering: .sequentiallyConsistent) == begin.word && kept.isEmpty
    }

    /// Takes everything that was posted so far, oldest first. The loop's thread, with the lock held.
    func takeAll() -> Batch {
        let batch = Batch(kept: kept, position: begin, end: endNow())
        if hasSurplus.load(ordering: .relaxed), batch.end.segment == begin.segment {
            freeOneSpare()
        }
        kept = BlockList()
        begin = batch.end
        return batch
    }

    /// Takes the first block of the batch that `mode` allows. Those before it move to `kept`.
    @inline(__always) func next(
        in batch: inout Batch, mode: LoopMode, isCommon: Bool, kept: inout BlockList
    ) -> (() -> Void)? {
        while let node = batch.kept.popFirst() {
            if node.pointee.block.isAllowed(in: mode, isCommon: isCommon) {
                return BlockList.free(node).body
            }
            kept.append(node)
        }
        while batch.position != batch.end {
            let block = take(&batch.position)
            if block.isAllowed(in: mode, isCommon: isCommon) { return block.body }
            kept.append(block)
        }
        return nil
    }

    /// Puts back what a drain did not run, ahead of what a nested drain kept.
    func putBack(_ list: consuming BlockList) {
        guard !list.isEmpty else { return }
        list.append(contentsOf: kept)
        kept = list
    }

    /// Whether a block waits that `mode` allows. The loop's thread.
    func holdsBlock(for mode: LoopMode, isCommon: Bool) -> Bool {
        kept = takeAllAsList()
        return kept.contains { $0.isAllowed(in: mode, isCommon: isCommon) }
    }

    /// How many blocks no drain has taken yet, by mode; one for several modes counts in each. Any thread, with the loop's lock
    /// held. Leaves out what is being posted at this moment.
    func countByMode() -> [LoopMode: Int] {
        var counts: [LoopMode: Int] = [:]
        func count(_ block: Block) {
            for mode in [block.mode] + (block.others ?? []) { counts[mode, default: 0] += 1 }
        }
        kept.forEach(count)
        let end = end.pointee.load(ordering: .acquiring)
        var position = begin
        while position.word != end && position.isFilled.pointee.load(ordering: .acquiring) != 0 {
            count(position.block.pointee)
            position = position.next
        }
        return counts
    }

    /// Takes everything, out of the slots also. What is dropped without the loop's lock must not be in them.
    func takeAllAsList() -> BlockList {
        var batch = takeAll()
        while batch.position != batch.end { batch.kept.append(take(&batch.position)) }
        return batch.kept
    }

    /// Lets go of blocks without running them.
    func drop(_ list: consuming BlockList) {
        while let node = list.popFirst() { _ = BlockList.free(node) }
    }

    /// Moves a block out of its slot, and the position to the next one.
    @inline(__always) private func take(_ position: inout BlockPosition) -> Block {
        let taken = position
        if taken.isFilled.pointee.load(ordering: .acquiring) == 0 {
            wait { taken.isFilled.pointee.load(ordering: .acquiring) == 0 }
        }
        let block = taken.block.move()
        taken.isFilled.pointee.store(0, ordering: .relaxed)
        position = taken.next
        let segment = taken.segment
        segment.left -= 1
        if segment.left == 0 { reuse(segment) }
        return block
    }

    /// Claims a slot. Sequentially consistent: a poster that finds the loop awake was seen by it, or will be.
    @inline(__always) private func claim() -> BlockPosition {
        let position = claimNext()
        return position.isBeforeLast ? position : claimAtSegmentEnd(position)
    }

    @inline(__always) private func claimNext() -> BlockPosition {
        BlockPosition(
            word: end.pointee.wrappingAdd(1, ordering: .sequentiallyConsistent).oldValue)
    }

    /// Whoever claims the last slot adds the next segment. Who comes too late waits for that, and claims again.
    @inline(never) private func claimAtSegmentEnd(_ claimed: BlockPosition) -> BlockPosition {
        var position = claimed
        while position.isBehindLast {
            position.requireRoom()
            wait { BlockPosition(word: end.pointee.load(ordering: .acquiring)).isBehindLast }
            position = claimNext()
        }
        guard position.isLast else { return position }
        let segment = spares.withLock { $0.popLast() } ?? BlockSegment()
        position.segment.next = segment
        end.pointee.store(BlockPosition(startOf: segment).word, ordering: .sequentiallyConsistent)
        return position
    }

    /// Where the end is. Waits for a poster that is about to add a segment; its block is one of those to take.
    private func endNow() -> BlockPosition {
        var position = begin
        wait {
            position = BlockPosition(word: end.pointee.load(ordering: .acquiring))
            return position.isBehindLast
        }
        return position
    }

    /// Waits for a thread that is in the middle of a post, some nanoseconds unless it was interrupted there. Then it needs
    /// a processor, perhaps this one.
    @inline(never) private func wait(while isUnfinished: () -> Bool) {
        var looks = 0
        while isUnfinished() {
            looks += 1
            if looks > 1_000 { usleep(50) } else if looks > 100 { sched_yield() }
        }
    }

    /// Keeps a segment for later use, with `left` and the marks as in a new one.
    @inline(never) private func reuse(_ segment: BlockSegment) {
        segment.left = BlockSegment.slotCount
        let count = spares.withLock { spares in
            spares.append(segment)
            return spares.count
        }
        if count > Self.surplus { hasSurplus.store(true, ordering: .relaxed) }
    }

    @inline(never) private func freeOneSpare() {
        let segment = spares.withLock { spares in
            hasSurplus.store(spares.count > Self.surplus + 1, ordering: .relaxed)
            return spares.count > Self.surplus ? spares.popLast() : nil
        }
        segment?.deallocate()
    }
}

/// Where a block is: the address of its segment plus the number of its slot, in one word.
private struct BlockPosition: Equatable {
    let word: UInt

    init(word: UInt) { self.word = word }
    init(startOf segment: BlockSegment) { word = segment.address }

    var segment: BlockSegment { BlockSegment(base: word & ~(BlockSegment.alignment - 1)) }
    private var number: Int { Int(word & (BlockSegment.alignment - 1)) }
    var isBeforeLast: Bool { number < BlockSegment.slotCount - 1 }
    var isLast: Bool { number == BlockSegment.slotCount - 1 }
    /// No slot: a claim that came too late.
    var isBehindLast: Bool { number >= BlockSegment.slotCount }

    /// The position behind this one, in the next segment after the last slot.
    var next: BlockPosition {
        isLast ? BlockPosition(startOf: segment.next) : BlockPosition(word: word + 1)
    }

    /// Every claim that comes too late counts on, and must not count into the address.
    func requireRoom() {
        precondition(
            number < BlockSegment.alignment / 2, "thousands of threads post to one run loop at once"
        )
    }

    var block: UnsafeMutablePointer<Block> {
        segment.slot(number).assumingMemoryBound(to: Block.self)
    }
    /// Lies in the padding behind the block.
    var isFilled: UnsafeMutablePointer<Atomic<UInt32>> {
        (segment.slot(number) + MemoryLayout<Block>.size)
            .assumingMemoryBound(to: Atomic<UInt32>.self)
    }
}

/// Two pages of slots.
private struct BlockSegment: Equatable {
    static let slotCount = 254
    /// Leaves room in an address for the number of a slot, and for as many late claims as there may be threads.
    static let alignment: UInt = 8_192
    private static let headerSize = 64
    private static let stride = MemoryLayout<Block>.size + MemoryLayout<Atomic<UInt32>>.size

    let address: UInt

    init(base: UInt) { address = base }

    init?(address: UInt) {
        guard address != 0 else { return nil }
        self.address = address
    }

    /// A new one, with all slots to be filled.
    init() {
        let base = UnsafeMutableRawPointer.allocate(
            byteCount: Self.headerSize + Self.slotCount * Self.stride,
            alignment: Int(Self.alignment))
        address = UInt(bitPattern: base)
        (base + 8).bindMemory(to: Int.self, capacity: 1).initialize(to: Self.slotCount)
        for number in 0..<Self.slotCount {
            let slot = slot(number)
            slot.bindMemory(to: Block.self, capacity: 1)
            (slot + MemoryLayout<Block>.size).bindMemory(to: Atomic<UInt32>.self, capacity: 1)
                .initialize(to: Atomic(0))
        }
    }

    func deallocate() { base.deallocate() }

    private var base: UnsafeMutableRawPointer { UnsafeMutableRawPointer(bitPattern: address)! }

    @inline(__always) func slot(_ number: Int) -> UnsafeMutableRawPointer {
        base + Self.headerSize + number * Self.stride
    }

    /// The segment behind it. Set by the thread that claims the last slot, before it marks that slot.
    var next: BlockSegment {
        get { base.load(as: BlockSegment.self) }
        nonmutating set { base.storeBytes(of: newValue, as: BlockSegment.self) }
    }

    /// How many slots have yet to be taken. The loop's thread alone.
    var left: Int {
        get { (base + 8).load(as: Int.self) }
        nonmutating set { (base + 8).storeBytes(of: newValue, as: Int.self) }
    }
}

/// A list of blocks that wait for their mode, in order. Whoever has it empties it or puts it back.
struct BlockList {
    struct Node {
        var block: Block
        var next: UnsafeMutablePointer<Node>?
    }

    private var first: UnsafeMutablePointer<Node>?
    private var last: UnsafeMutablePointer<Node>?

    var isEmpty: Bool { first == nil }

    func contains(where test: (Block) -> Bool) -> Bool {
        var isFound = false
        forEach { isFound = isFound || test($0) }
        return isFound
    }

    func forEach(_ body: (Block) -> Void) {
        var node = first
        while let current = node {
            body(current.pointee.block)
            node = current.pointee.next
        }
    }

    mutating func append(_ block: Block) {
        let node = UnsafeMutablePointer<Node>.allocate(capacity: 1)
        node.initialize(to: Node(block: block, next: nil))
        append(node)
    }

    mutating func append(_ node: UnsafeMutablePointer<Node>) {
        node.pointee.next = nil
        if let last { last.pointee.next = node } else { first = node }
        last = node
    }

    mutating func append(contentsOf other: BlockList) {
        guard let head = other.first else { return }
        if let last { last.pointee.next = head } else { first = head }
        last = other.last
    }

    mutating func popFirst() -> UnsafeMutablePointer<Node>? {
        guard let node = first else { return nil }
        first = node.pointee.next
        if first == nil { last = nil }
        return node
    }

    static func free(_ node: UnsafeMutablePointer<Node>) -> Block {
        defer { node.deallocate() }
        return node.move().block
    }
}
