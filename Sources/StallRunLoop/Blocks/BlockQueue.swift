// Performed blocks: any thread posts without a lock, the loop's thread drains.
//
//     post:   claim the next slot (one atomic addition), fill it, mark it filled
//     drain:  note where the end is now; run the blocks before it that the mode allows, keep the others (KeptBlocks.swift)
//
// Slots lie side by side in segments, so that both sides walk through memory in order and no nodes are handed back. A
// claimed slot belongs to one thread until it is marked filled. A thread that needs it meanwhile waits, as for a lock: the
// loop for the block, and other posters, once a segment, for the one that adds the next.

internal import CLinux
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
    /// The blocks that one drain may run: those that earlier drains kept, then slots.
    struct Batch: ~Copyable {
        /// Nil when there are none, which is the rule and costs nothing then.
        fileprivate var kept: KeptBlocks?
        fileprivate var position: BlockPosition
        fileprivate let end: BlockPosition
        fileprivate let drain: UInt64
        /// The process that it began in.
        fileprivate let forkGeneration = stall_fork_generation()
        /// The last block of `kept` that it ran.
        fileprivate var passed = KeptBlock.Position.start
        /// No block of `kept` is left to run, also if the mode becomes a common one now.
        fileprivate var isPastKept: Bool
        /// The blocks that it could not run, in the order they were posted.
        fileprivate var notAllowed: [KeptBlock]?
    }

    /// The next slot to claim; behind the last one of its segment until the next segment is there. On a cache line of
    /// its own.
    private let end: UnsafeMutablePointer<Atomic<UInt>>
    /// The position of the first slot that no drain has taken. Changed by the loop's thread, with the loop's lock held.
    @exclusivity(unchecked) private var begin: BlockPosition
    /// Blocks of earlier drains whose mode did not run; nil when there are none. Guarded like `begin`.
    @exclusivity(unchecked) private var kept: KeptBlocks?
    @exclusivity(unchecked) private var drains: UInt64 = 0
    /// Where segments come from.
    private let memory = Locked(SegmentMemory())
    @exclusivity(unchecked) private var isMemoryHeldForFork = false

    init() {
        begin = BlockPosition(startOf: BlockSegment(in: memory.withLock { $0.take() }))
        end = UnsafeMutableRawPointer.allocate(byteCount: 128, alignment: 128)
            .bindMemory(to: Atomic<UInt>.self, capacity: 1)
        end.initialize(to: Atomic(begin.word))
    }

    deinit {
        _ = takeEverything()
        memory.withLock { $0.unmapAll() }
        end.deallocate()
    }

    /// Adds a block at the end. Any thread.
    @inline(__always) func post(_ block: consuming Block) {
        let position = claim()
        position.block.initialize(to: block)
        position.isFilled.pointee.store(1, ordering: .releasing)
    }

    /// Whether there may be a block that `mode` allows, or that no drain has looked at. The loop's thread.
    @inline(__always) func mayHoldBlock(for mode: LoopMode, isCommon: Bool) -> Bool {
        end.pointee.load(ordering: .sequentiallyConsistent) != begin.word
            || (kept != nil && keptMayHoldBlock(for: mode, isCommon: isCommon))
    }

    @inline(never) private func keptMayHoldBlock(for mode: LoopMode, isCommon: Bool) -> Bool {
        kept?.mayHoldBlock(for: mode, isCommon: isCommon) ?? false
    }

    /// Takes everything that was posted so far. The loop's thread, with the lock held.
    func takeAll() -> Batch {
        drains += 1
        let end = endNow()
        let (first, earlier) = (begin, kept.take())
        begin = end
        return Batch(
            kept: earlier, position: first, end: end, drain: drains, isPastKept: earlier == nil)
    }

    /// Takes the first block of the batch that `mode` allows.
    @inline(__always) func next(
        in batch: inout Batch, mode: LoopMode, isCommon: Bool
    ) -> (() -> Void)? {
        if !batch.isPastKept {
            if let body = nextKept(in: &batch, mode: mode, isCommon: isCommon) { return body }
            batch.isPastKept = true
        }
        while batch.position != batch.end {
            let block = take(&batch.position, batch.forkGeneration)
            if block.isAllowed(in: mode, isCommon: isCommon) { return block.body }
            keep(block, in: &batch)
        }
        return nil
    }

    @inline(never) private func nextKept(
        in batch: inout Batch, mode: LoopMode, isCommon: Bool
    ) -> (() -> Void)? {
        guard batch.kept?.mayHoldBlock(for: mode, isCommon: isCommon) == true else { return nil }
        return batch.kept?.takeFirst(for: mode, isCommon: isCommon, after: &batch.passed)
    }

    @inline(never) private func keep(_ block: consuming Block, in batch: inout Batch) {
        let number = UInt64(batch.notAllowed?.count ?? 0)
        batch.notAllowed = batch.notAllowed ?? []
        batch.notAllowed?.append(
            KeptBlock(block, at: .init(drain: batch.drain, number: number)))
    }

    /// Keeps what a drain did not run, ahead of what nested drains have kept. With the lock held.
    @inline(__always) func finish(_ batch: consuming Batch) {
        if batch.position != batch.end { putBackRest(of: &batch) }
        if batch.kept == nil && batch.notAllowed == nil { return }
        keepRest(of: batch)
    }

    /// A limit has ended the drain. The rest stays in its slots, unless a nested drain has taken those behind it, or
    /// the process was forked meanwhile and may wait in vain for one of them.
    @inline(never) private func putBackRest(of batch: inout Batch) {
        if drains == batch.drain && batch.forkGeneration == stall_fork_generation() {
            begin = batch.position
        } else {
            while batch.position != batch.end {
                keep(take(&batch.position, batch.forkGeneration), in: &batch)
            }
        }
    }

    @inline(never) private func keepRest(of batch: consuming Batch) {
        var all = batch.kept.take() ?? KeptBlocks()
        if let notAllowed = batch.notAllowed { all.append(notAllowed) }
        if let later = kept.take() { all.append(later) }
        kept = all.isEmpty ? nil : all
    }

    /// Whether a block waits that `mode` allows. The loop's thread, with the lock held.
    func holdsBlock(for mode: LoopMode, isCommon: Bool) -> Bool {
        keepAll()
        return kept?.holdsBlock(for: mode, isCommon: isCommon) ?? false
    }

    /// Moves all blocks out of their slots.
    private func keepAll() {
        var batch = takeAll()
        while batch.position != batch.end {
            keep(take(&batch.position, batch.forkGeneration), in: &batch)
        }
        finish(batch)
    }

    /// Takes everything out. It is to be dropped without the loop's lock.
    func takeEverything() -> KeptBlocks {
        keepAll()
        return kept.take() ?? KeptBlocks()
    }

    /// How many blocks no drain has taken yet, by mode; one for several modes counts in each. Any thread, with the
    /// loop's lock held. Leaves out what is being posted at this moment.
    func countByMode() -> [LoopMode: Int] {
        var counts = kept?.countByMode() ?? [:]
        func count(_ block: Block) {
            for mode in [block.mode] + (block.others ?? []) { counts[mode, default: 0] += 1 }
        }
        let end = end.pointee.load(ordering: .acquiring)
        var position = begin
        while position.word != end && position.isFilled.pointee.load(ordering: .acquiring) != 0 {
            count(position.block.pointee)
            position = position.next
        }
        return counts
    }

    /// Moves a block out of its slot, and the position to the next one.
    @inline(__always) private func take(
        _ position: inout BlockPosition, _ forkGeneration: UInt32
    ) -> Block {
        let taken = position
        if taken.isFilled.pointee.load(ordering: .acquiring) == 0 {
            waitForBlock(at: taken, forkGeneration)
        }
        let block = taken.block.move()
        taken.isFilled.pointee.store(0, ordering: .relaxed)
        position = taken.next
        let segment = taken.segment
        segment.left -= 1
        if segment.left == 0 { reuse(segment) }
        return block
    }

    /// Waits until a slot is filled. One that was claimed before a fork, by a thread that the child does not have, is
    /// left empty.
    @inline(never) private func waitForBlock(at position: BlockPosition, _ generation: UInt32) {
        if generation != stall_fork_generation() { return position.fillWithNothing() }
        wait { position.isFilled.pointee.load(ordering: .acquiring) == 0 }
    }

    /// Claims a slot. Sequentially consistent: a poster that finds the loop awake was seen by it, or will be.
    @inline(__always) private func claim() -> BlockPosition {
        let position = claimNext()
        return position.isBeforeLast ? position : claimAtSegmentEnd(position)
    }

    @inline(__always) func claimNext() -> BlockPosition {
        BlockPosition(
            word: end.pointee.wrappingAdd(1, ordering: .sequentiallyConsistent).oldValue)
    }

    /// The thread that claims the last slot adds the next segment. A thread that comes later waits for that, and claims
    /// again.
    @inline(never) private func claimAtSegmentEnd(_ claimed: BlockPosition) -> BlockPosition {
        var position = claimed
        while position.isBehindLast {
            position.requireRoom()
            wait { BlockPosition(word: end.pointee.load(ordering: .acquiring)).isBehindLast }
            position = claimNext()
        }
        guard position.isLast else { return position }
        let segment = BlockSegment(in: memory.withLock { $0.take() })
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

    /// Waits for a thread that is in the middle of a post, some nanoseconds unless it was interrupted there. Then it
    /// needs a processor, perhaps this one.
    @inline(never) private func wait(while isUnfinished: () -> Bool) {
        var looks = 0
        while isUnfinished() {
            looks += 1
            if looks > 1_000 { usleep(50) } else if looks > 100 { sched_yield() }
        }
    }

    /// Gives the memory of a segment back, for later use or to the kernel.
    @inline(never) private func reuse(_ segment: BlockSegment) {
        memory.withLock { $0.giveBack(segment.address) }
    }

    /// How many bytes its segments take, used or not. Any thread.
    var memorySize: Int { memory.withLock { $0.size } }
}

// MARK: - Fork

extension BlockQueue {
    /// Keeps other threads from leaving the memory half changed in a child. With the loop's lock held.
    func holdForFork() { isMemoryHeldForFork = memory.lockForFork() }

    /// After the fork, in parent and child.
    func letGoAfterFork() {
        if isMemoryHeldForFork { memory.unlockAfterFork() }
        isMemoryHeldForFork = false
    }

    /// In the child: blocks that other threads were posting will never be there. Their slots get blocks that do
    /// nothing.
    func repairAfterFork() {
        let last = BlockPosition(word: end.pointee.load(ordering: .acquiring))
        var position = begin
        while position != last {
            if position.isFilled.pointee.load(ordering: .acquiring) == 0 {
                position.fillWithNothing()
            }
            if position.isLast && last.isBehindLast && position.segment == last.segment {
                let segment = BlockSegment(in: memory.withLock { $0.take() })
                position.segment.next = segment
                end.pointee.store(BlockPosition(startOf: segment).word, ordering: .releasing)
                return
            }
            position = position.next
        }
    }
}

/// Where a block is: the address of its segment plus the number of its slot, in one word.
struct BlockPosition: Equatable {
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
        guard number < BlockSegment.alignment / 2 else {
            fatalError("thousands of threads post to one run loop at once")
        }
    }

    var block: UnsafeMutablePointer<Block> {
        segment.slot(number).assumingMemoryBound(to: Block.self)
    }
    func fillWithNothing() {
        block.initialize(to: Block(others: nil, body: {}, mode: .default))
        isFilled.pointee.store(1, ordering: .releasing)
    }

    /// Lies in the padding behind the block.
    var isFilled: UnsafeMutablePointer<Atomic<UInt32>> {
        (segment.slot(number) + MemoryLayout<Block>.size)
            .assumingMemoryBound(to: Atomic<UInt32>.self)
    }
}

/// Slots side by side, in memory that the loop's ``SegmentMemory`` has given.
struct BlockSegment: Equatable {
    static let slotCount = 254
    /// Leaves room in an address for the number of a slot, and for as many late claims as there may be threads.
    static let alignment = UInt(SegmentMemory.pieceSize)
    private static let headerSize = 64
    private static let stride = MemoryLayout<Block>.size + MemoryLayout<Atomic<UInt32>>.size

    let address: UInt

    init(base: UInt) { address = base }

    /// A new one, with all slots to be filled. Memory that had a segment before is found as that left it.
    init(in memory: SegmentMemory.Piece) {
        address = memory.address
        left = Self.slotCount
        guard memory.isNew else { return }
        precondition(Self.headerSize + Self.slotCount * Self.stride <= Int(Self.alignment))
        for number in 0..<Self.slotCount {
            let slot = slot(number)
            slot.bindMemory(to: Block.self, capacity: 1)
            (slot + MemoryLayout<Block>.size).bindMemory(to: Atomic<UInt32>.self, capacity: 1)
                .initialize(to: Atomic(0))
        }
    }

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
