// Selects the holder of the lock among the suspects, by the waiter's stack, and detects deadlocks.

package import StallModel

/// The holders of a chain of locks.
struct LockChain: Equatable, Sendable {
    /// Nearest first: each holds what the one before it waits for, the first what the stalled thread waits for.
    var holders: [LockSuspect]
    /// The last one waits for a lock that another one of the chain, or the stalled thread, holds.
    var isCircular: Bool
}

/// The holders behind one sample; nil if no suspect holds what the stack waits for.
func lockChain(behind sample: CauseSample) -> LockChain? {
    let observation = sample.observation
    var holders: [LockSuspect] = []
    var chain = [observation.thread]
    while let waiter = chain.last {
        // A wait that is not a lock by its stack has no owner, whatever its memory contains.
        let functions = holders.last?.functions ?? sample.functions
        let futex = holders.last?.wait.futex ?? observation.wait.futex
        var fields: [LockSuspect.Field] = futex?.namesOwner == true ? [.word] : []
        if case .lock(let kind) = FrameHint(functions) { fields += kind.ownerFields }
        let suspect = observation.suspects.first { suspect in
            suspect.waiter == waiter && fields.contains(suspect.field)
        }
        guard let suspect else { break }
        holders.append(suspect)
        if chain.contains(suspect.owner) { return LockChain(holders: holders, isCircular: true) }
        chain.append(suspect.owner)
        guard suspect.wait.futex != nil else { break }
    }
    return holders.isEmpty ? nil : LockChain(holders: holders, isCircular: false)
}

/// The thread that holds what a thread waits for, by the waiter's stack and the memory around the futex; nil if the
/// stack shows no lock with an owner.
package func lockOwner(of futex: WaitedFutex, _ functions: [String]) -> ThreadID? {
    var fields: [LockSuspect.Field] = futex.namesOwner ? [.word] : []
    if case .lock(let kind) = FrameHint(functions) { fields += kind.ownerFields }
    let owners = possibleOwners(of: futex)
    return fields.lazy.compactMap { field in owners.first { $0.field == field }?.owner }.first
}

extension LockKind {
    /// The fields that may contain the owner of a lock of this kind.
    fileprivate var ownerFields: [LockSuspect.Field] {
        switch self {
        case .mutex: [.mutexOwner, .word]
        case .swiftMutex, .threadEnd, .once: [.word]
        case .rwlock: [.rwlockWriterFromReader, .rwlockWriterFromWriter]
        case .dispatchQueue: [.queueState]
        case .condition, .semaphore, .dispatchGroup, .initializer, .barrier, .file, .database,
            .spin, .other:
            []
        }
    }
}

extension LockChain {
    /// Whether this is the same cycle as an earlier one: no thread in it has run in between, and no wait has a time
    /// limit. Only then it is a deadlock.
    func isStill(since earlier: LockChain) -> Bool {
        isCircular && earlier.isCircular && holders.count == earlier.holders.count
            && zip(holders, earlier.holders).allSatisfy { now, before in
                now.waiter == before.waiter && now.owner == before.owner
                    && now.address == before.address && now.field == before.field
                    && now.counters.waits == before.counters.waits
                    && now.wait.futex?.address == before.wait.futex?.address
                    && now.wait.deadline == nil
            }
    }
}

/// The chain that accounts for most of the stall, and whether it is a deadlock.
func mainChain(_ samples: [CauseSample]) -> (chain: LockChain, isDeadlock: Bool)? {
    let chains = samples.compactMap { sample in
        lockChain(behind: sample).map { (chain: $0, weight: sample.weight) }
    }
    guard let last = chains.last else { return nil }
    let earlier = chains.dropLast().last
    if let earlier, last.chain.isStill(since: earlier.chain) { return (last.chain, true) }
    let weights = chains.reduce(into: [ThreadID: Duration]()) {
        $0[$1.chain.holders[0].owner, default: .zero] += $1.weight
    }
    let main = weights.max { ($0.value, $0.key.rawValue) < ($1.value, $1.key.rawValue) }?.key
    let chain = chains.last { $0.chain.holders[0].owner == main }?.chain ?? last.chain
    return (chain, false)
}
