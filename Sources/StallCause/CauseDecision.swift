// Decides why a loop stalled. Pure: evidence and function names in, a cause out, so that every rule is tested with a
// table.
//
// The counters give the parts of the stall in which the thread ran, waited for a CPU or was blocked. The samples give
// the reasons for the running and the blocked parts. Time that was not observed is `unknown`, and evidence that could
// not be read lowers the confidence.

package import StallModel

/// One sample of the stalled thread: its time, its weight, its evidence, and its stack.
package struct CauseSample: Equatable, Sendable {
    package var weight: Duration
    package var observation: Observation
    /// The function names on its stack, innermost first; empty without a stack.
    package var functions: [String]

    package init(weight: Duration, observation: Observation, functions: [String]) {
        self.weight = weight
        self.observation = observation
        self.functions = functions
    }
}

/// The evidence of one stall.
package struct CauseFacts: Equatable, Sendable {
    package var verdict: StallVerdict
    package var duration: Duration
    package var cpuTime: Duration
    /// When it ended; nil while it lasts.
    package var ended: MonotonicInstant?
    /// In chronological order, without late ones.
    package var samples: [CauseSample]
    /// The counters' growth from the first sample to the last poll, and the length of that interval.
    package var growth: Counters
    package var observed: Duration

    package init(
        verdict: StallVerdict, duration: Duration, cpuTime: Duration, ended: MonotonicInstant?,
        samples: [CauseSample], growth: Counters, observed: Duration
    ) {
        self.verdict = verdict
        self.duration = duration
        self.cpuTime = cpuTime
        self.ended = ended
        self.samples = samples
        self.growth = growth
        self.observed = observed
    }
}

/// The conclusion from one sample.
struct SampleFinding: Equatable {
    var cause: CauseClass
    var lock: LockKind?
    /// From 0 to 1.
    var confidence: Double
    var isRunning: Bool
    /// For a running thread: the cause of waits between the samples, judging by its stack.
    var between: CauseClass?
}

/// A cause, and the threads that a stall with the cause `lock` waited for.
package struct ExplainedStall: Equatable, Sendable {
    package var cause: StallCause
    /// Nearest first: each holds what the one before it waits for. Without the stalled thread itself.
    package var holders: [LockSuspect]
}

/// The cause of a stall.
package func explainStall(_ facts: CauseFacts) -> ExplainedStall {
    var cause = decideCause(facts)
    guard cause.cause == .lock, let (chain, isDeadlock) = mainChain(facts.samples) else {
        return ExplainedStall(cause: cause, holders: [])
    }
    let nearest = chain.holders[0]
    cause.holder = LockHolder(
        thread: nearest.owner, name: nearest.name, isDeadlock: isDeadlock)
    let stalled = facts.samples.last?.observation.thread
    return ExplainedStall(cause: cause, holders: chain.holders.filter { $0.owner != stalled })
}

/// The class, its shares and the evidence.
func decideCause(_ facts: CauseFacts) -> StallCause {
    let findings = facts.samples.map { (finding(of: $0, in: facts), $0) }
    var shares = shares(of: facts, findings)
    if facts.verdict == .debugger || facts.verdict == .stopped && !facts.wasBlockedThroughout {
        shares = [.stopped: 1]
    }
    if facts.verdict == .throttled { shares = [.throttled: 1] }
    let ordered = rounded(shares)
    let first = ordered.first ?? CauseShare(.unknown, 1)
    let own = findings.filter { $0.0.cause == first.cause }
    var confidence = confidence(of: first, own.map { ($0.0.confidence, $0.1.weight) }, facts)
    let unreadable = facts.samples.reduce(into: UnreadableFacts()) {
        $0.formUnion($1.observation.wait.unreadable)
    }
    if unreadable.contains(.systemCall) { confidence *= 0.6 }
    if unreadable.contains(.schedule) { confidence *= 0.8 }
    if unreadable.contains(.state) { confidence *= 0.8 }
    // A sample of another class would contradict the counters, which show that the thread ran.
    let heaviest =
        own.max { $0.1.weight < $1.1.weight }
        ?? (first.cause == .cpu ? nil : findings.max { $0.1.weight < $1.1.weight })
    return StallCause(
        first.cause, confidence: (confidence * 1000).rounded() / 1000, shares: ordered,
        evidence: evidence(facts, heaviest?.1, heaviest?.0, unreadable))
}

/// The thread's state at one instant.
private func finding(of sample: CauseSample, in facts: CauseFacts) -> SampleFinding {
    let wait = sample.observation.wait
    let hint = FrameHint(sample.functions)
    func found(
        _ cause: CauseClass, _ confidence: Double, lock: LockKind? = nil, isRunning: Bool = false
    ) -> SampleFinding {
        SampleFinding(cause: cause, lock: lock, confidence: confidence, isRunning: isRunning)
    }
    if wait.state == UInt8(ascii: "T") || wait.state == UInt8(ascii: "t") {
        return found(.stopped, 0.95)
    }
    let isUnread = wait.unreadable.contains(.systemCall)
    if wait.isRunning || (isUnread && wait.state == UInt8(ascii: "R")) { return running(hint) }
    if isUnread { return unread(wait, hint) }
    if hint == .resolver { return found(.network, 0.95) }
    if hint == .child { return found(.ipc, 0.95) }
    if hint == .timedLoop, wait.descriptors.allSatisfy(\.isOfLoop) { return found(.sleep, 0.8) }
    if wait.isBlockedOutsideCalls { return found(.pageFault, 0.9) }
    guard let call = wait.call else { return byChannel(wait) }
    if wait.isFaulting(in: call) { return found(.pageFault, 0.9) }
    switch call.kind {
    case .file: return byFile(wait, call)
    case .close: return byClose(wait)
    // From a file into a pipe: the call's own descriptor is not what it waits for.
    case .descriptor where wait.waitChannel.contains("pipe"): return found(.ipc, 0.95)
    case .descriptor where wait.descriptors.first?.kind == .file: return byFile(wait, call)
    case .descriptor, .socket: return byDescriptors(wait, wait.descriptors, call)
    case .poll:
        return wait.descriptors.isEmpty
            ? found(.sleep, 0.9) : byDescriptors(wait, wait.descriptors, call)
    case .epoll:
        let members = wait.descriptors.filter { $0.kind != .epoll }
        if !members.isEmpty { return byDescriptors(wait, members, call) }
        // A set without members that is known to be one.
        let isSleep = !wait.descriptors.isEmpty && wait.hasPollLimit
        return isSleep ? found(.sleep, 0.9) : found(.unknown, 0.5)
    case .futex: return byFutex(wait, hint, facts.ended)
    case .sleep:
        return hint == .lock(.database)
            ? found(.lock, 0.9, lock: .database) : found(.sleep, 0.98)
    case .fileLock: return found(.lock, 0.95, lock: .file)
    case .child, .exchange: return found(.ipc, 0.95)
    case .signal: return found(.ipc, 0.5)
    case .memory: return found(.pageFault, 0.7)
    case .yield: return found(.cpu, 0.8, isRunning: true)
    case .ring: return byRing(wait)
    }
}

/// A running thread computes, whatever it calls, even a read that needs no waiting. Only a spinning thread waits.
private func running(_ hint: FrameHint?) -> SampleFinding {
    var found = SampleFinding(cause: .cpu, confidence: 0.95, isRunning: true)
    switch hint {
    case .lock(.spin):
        found = SampleFinding(cause: .lock, lock: .spin, confidence: 0.9, isRunning: true)
    case .lock: found.between = .lock
    case .file: found.between = .disk
    case .resolver: found.between = .network
    case .memory, .child, .timedLoop, nil: break
    }
    return found
}

/// If the kernel does not show system calls: decides by the stack and the kernel function that the thread sleeps in.
private func unread(_ wait: Wait, _ hint: FrameHint?) -> SampleFinding {
    switch hint {
    case .lock(let kind): SampleFinding(cause: .lock, lock: kind, confidence: 0.8, isRunning: false)
    case .file: wait.isFileSystems ? disk(0.6) : byChannel(wait)
    case .resolver: SampleFinding(cause: .network, confidence: 0.8, isRunning: false)
    case .child: SampleFinding(cause: .ipc, confidence: 0.8, isRunning: false)
    case .memory, .timedLoop, nil: byChannel(wait)
    }
}

extension WaitedDescriptor {
    /// A descriptor of the loop itself: a timer or a wake-up descriptor.
    fileprivate var isOfLoop: Bool { kind == .event || kind == .timer || kind == .epoll }
}

private func byFutex(_ wait: Wait, _ hint: FrameHint?, _ ended: MonotonicInstant?) -> SampleFinding
{
    guard case .lock(let kind) = hint else {
        return SampleFinding(cause: .lock, lock: .other, confidence: 0.7, isRunning: false)
    }
    // A timed wait on a condition that is never signalled is a common way to sleep.
    if kind == .condition, let deadline = wait.deadline {
        guard let ended else {
            return SampleFinding(cause: .lock, lock: kind, confidence: 0.5, isRunning: false)
        }
        if ended + .milliseconds(2) >= deadline {
            return SampleFinding(cause: .sleep, lock: kind, confidence: 0.8, isRunning: false)
        }
    }
    return SampleFinding(cause: .lock, lock: kind, confidence: 0.97, isRunning: false)
}

/// The stall's shares by class, from 0 to 1, with the sum 1.
private func shares(
    of facts: CauseFacts, _ findings: [(SampleFinding, CauseSample)]
) -> [CauseClass: Double] {
    guard facts.duration > .zero else { return [.unknown: 1] }
    func part(_ growth: Duration) -> Double {
        facts.observed > .zero ? min(1, max(0, growth / facts.observed)) : 0
    }
    let running = min(1, max(0, facts.cpuTime / facts.duration))
    var delayed = min(1 - running, part(facts.growth.runDelay))
    let throttled = delayed > 0.05 ? min(delayed, part(facts.growth.throttled)) : 0
    delayed -= throttled
    // A share that no counter accounts for is noise of the clocks.
    let blocked = max(0, 1 - running - delayed - throttled)

    func weights(_ isRunning: Bool) -> [CauseClass: Double] {
        findings.filter { $0.0.isRunning == isRunning }.reduce(into: [:]) {
            $0[$1.0.cause, default: 0] += max($1.1.weight / facts.duration, 1e-6)
        }
    }
    var shares: [CauseClass: Double] = [:]
    func give(_ share: Double, _ weights: [CauseClass: Double], otherwise cause: CauseClass) {
        let total = weights.values.reduce(0, +)
        guard total > 0 else { return shares[cause, default: 0] += share }
        for (cause, weight) in weights { shares[cause, default: 0] += share * weight / total }
    }
    let (whileRunning, whileBlocked) = (weights(true), weights(false))
    let between = findings.reduce(into: [CauseClass: Double]()) { weights, finding in
        guard let cause = finding.0.between else { return }
        weights[cause, default: 0] += max(finding.1.weight / facts.duration, 1e-6)
    }
    // A fault that reads memory from disk also costs CPU time in the kernel, which is not computing.
    let faulting = min(running, Double(facts.growth.majorFaults) * (faultCost / facts.duration))
    shares[.pageFault, default: 0] += faulting > 0.05 ? faulting : 0
    give(faulting > 0.05 ? running - faulting : running, whileRunning, otherwise: .cpu)
    shares[.starved, default: 0] += delayed
    shares[.throttled, default: 0] += throttled
    if whileBlocked.isEmpty {
        // Blocked only between the samples: short waits, whose cause follows from the stack. A thread that never left
        // the CPU voluntarily was not blocked: the missing time was taken from the whole machine.
        let hasWaited = facts.growth.waits > 0 || facts.observed <= .zero
        var about = hasWaited ? between : [:]
        if facts.growth.majorFaults > 0, about.isEmpty { about[.pageFault] = 1 }
        let isNoise = running > 0 && (blocked < 0.1 || !hasWaited && running > 0.5)
        give(blocked, about, otherwise: isNoise ? .cpu : .unknown)
    } else {
        give(blocked, whileBlocked, otherwise: .unknown)
    }
    return shares
}

/// CPU time of the kernel per major fault. Chosen between measurements of cold files on an idle and on a busy machine,
/// so that reading them counts as page faults, not as computing.
private let faultCost = Duration.microseconds(60)

extension CauseFacts {
    /// Blocked in one uninterrupted wait in all samples: a stop interrupts the wait, and the context switch would have
    /// been counted. However late the samples were, this wait lasted the whole time.
    fileprivate var wasBlockedThroughout: Bool {
        let waits = samples.map(\.observation)
        guard waits.count >= 2, let first = waits.first, growth.waits <= 1 else { return false }
        return waits.allSatisfy { snapshot in
            !snapshot.wait.isRunning && snapshot.wait.systemCall == first.wait.systemCall
                && snapshot.counters.waits == first.counters.waits
        }
    }
}

/// In thousandths with the sum 1, largest first; parts below one percent are added to the largest.
private func rounded(_ shares: [CauseClass: Double]) -> [CauseShare] {
    let large = Array(shares.filter { $0.value >= 0.01 })
    let ordered = sortedPlaces(large.count) { one, other in
        let (one, other) = (large[one], large[other])
        return (other.value, one.key.rawValue) < (one.value, other.key.rawValue)
    }.map { large[$0] }
    guard let first = ordered.first else { return [] }
    let rest = ordered.dropFirst().map { CauseShare($0.key, ($0.value * 1000).rounded() / 1000) }
    let taken = rest.reduce(0) { $0 + ($1.fraction * 1000).rounded() }
    return [CauseShare(first.key, (1000 - taken) / 1000)] + rest
}

/// The confidence in the class: from that of its samples, and from its lead over the second class.
private func confidence(
    of share: CauseShare, _ samples: [(confidence: Double, weight: Duration)], _ facts: CauseFacts
) -> Double {
    let total = samples.reduce(0) { $0 + ($1.weight / .seconds(1)) }
    var base: Double
    if total > 0 {
        base = samples.reduce(0) { $0 + $1.confidence * ($1.weight / .seconds(1)) } / total
    } else {
        switch share.cause {
        case .starved, .throttled: base = facts.observed > .zero ? 0.9 : 0.5
        case .stopped: base = 0.9
        case .cpu: base = 0.8
        case .unknown: base = 0.2
        default: base = 0.5
        }
    }
    if share.fraction < 0.6 { base *= 0.5 + share.fraction * 0.8 }
    return min(1, max(0.05, base))
}
