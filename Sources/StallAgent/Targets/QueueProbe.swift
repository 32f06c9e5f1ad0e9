// Detects from outside whether a Dispatch queue is making progress. The begin and end of its items cannot be observed,
// so the queue is polled, and a probe is enqueued only while it is busy: an idle queue is not touched.
//
//     tick:  no item runs ------------------------------------------> nothing to do
//            an item runs -> enqueue a probe behind the waiting items
//            the probe still waits, and no item has begun since ---> the beacon is busy, from about the item's begin
//     probe: it runs -----------------------------------------------> the beacon is waiting
//
// While the probe waits, all items before it have different addresses. So an unchanged head of the list means the same
// running item, and a long list of short items is never mistaken for a stall.

internal import CLinux
internal import StallModel
internal import Synchronization

/// The result of a poll of a queue.
enum ProbeResult: Equatable, Sendable {
    /// No item runs that could stall.
    case idle
    /// The waiting items are not supposed to run now: the queue is suspended, or its loop serves another mode.
    case halted
    /// An item runs, or should. `head` identifies the item that waits longest, 0 if none does.
    case working(head: UInt64)
    /// The queue's state cannot be read; only a probe shows it.
    case unknown
}

/// A queue as its probe uses it. Called on the probe thread.
protocol ProbeTarget: AnyObject, Sendable {
    /// The queue's current state; nil if it is gone for good.
    func poll() -> ProbeResult?
    /// Whether an unanswered probe means anything only after a first one was answered: the queue may not be served at
    /// all.
    var mustAnswerFirst: Bool { get }
    /// Enqueues a probe behind the waiting items.
    func post(_ probe: @escaping @Sendable () -> Void)
}

/// The state of the probe, which decides who updates the beacon next.
enum ProbeState: UInt8, AtomicRepresentable {
    /// No probe is enqueued.
    case none
    /// A probe is enqueued; the beacon does not depend on it.
    case pending
    /// A probe is enqueued, and the beacon may be busy because of it.
    case reported
}

/// The probe of one queue. One thread calls `tick`; a probe runs on any thread of the queue.
final class QueueProbe: @unchecked Sendable {
    // Unchecked because all but `state` and `answered` is confined to the thread that calls `tick`.
    let period: Duration
    private let target: any ProbeTarget
    private let beacon: SharedBeacon
    private let clock: @Sendable () -> MonotonicInstant
    private let state = Atomic<ProbeState>(.none)
    /// When the last probe ran, in nanoseconds; 0 before the first.
    private let answered = Atomic<UInt64>(0)

    /// The number of probes so far.
    private let probeNumber = Atomic<UInt64>(0)

    private(set) var nextTick = MonotonicInstant(nanoseconds: 0)
    private var lastTick: MonotonicInstant?
    private var lastPoll = ProbeResult.idle
    /// The number of consecutive polls at which no item ran.
    private var idlePolls = 0
    /// The estimated begin of the running item; nil if none runs.
    private var began: MonotonicInstant?
    /// The begin as last written to the beacon.
    private var reportedSince: MonotonicInstant?

    init(
        _ target: any ProbeTarget, beacon: SharedBeacon, threshold: Duration,
        clock: @escaping @Sendable () -> MonotonicInstant = {
            MonotonicInstant(nanoseconds: stall_monotonic_ns())
        }
    ) {
        self.target = target
        self.beacon = beacon
        self.clock = clock
        period = Self.period(threshold: threshold)
    }

    /// An eighth of the threshold: the begin of a stall is known to a sixteenth of it, and the watchdog's first sample,
    /// at half of it, still comes in time. Between 5 and 100 ms.
    static func period(threshold: Duration) -> Duration {
        min(max(threshold / 8, .milliseconds(5)), .milliseconds(100))
    }

    /// After this many idle polls a queue is polled half as often. Polling less often would delay the watchdog's first
    /// sample: the item is found at a quarter of the threshold, and known to be busy at three eighths.
    private static let idlePollsUntilSlow = 40

    /// Polls the queue. Returns false if it is gone.
    func tick() -> Bool {
        guard let poll = target.poll() else {
            publish(nil)
            return false
        }
        let now = clock()
        // The probe records when it ran: no item can have stalled before that.
        let answer = MonotonicInstant(nanoseconds: answered.load(ordering: .sequentiallyConsistent))
        let earliest = max(lastTick ?? now, answer)
        // A thread that was delayed does not know what happened meanwhile.
        let wasDelayed = lastTick != nil && now - nextTick > period
        let estimate = wasDelayed ? now : earliest + (now - earliest) / 2
        let isOut = state.load(ordering: .sequentiallyConsistent) != .none

        switch poll {
        case .idle, .halted:
            began = nil
            idlePolls += 1
        case .unknown, .working:
            idlePolls = 0
            let isSameItem = began != nil && isOut && poll == lastPoll
            if !isSameItem { began = estimate }
        }
        lastTick = now
        lastPoll = poll
        nextTick = now + (idlePolls < Self.idlePollsUntilSlow ? period : period * 2)

        if !isOut, poll != .halted, poll != .idle || needsFirstAnswer {
            clear(at: now)
            state.store(.pending, ordering: .sequentiallyConsistent)
            let number = probeNumber.add(1, ordering: .sequentiallyConsistent).newValue
            target.post { [self] in probe(number) }
            // Only the probe is known to wait, and only from now on: this thread may have been delayed before.
            if poll == .unknown { began = clock() }
            followProbe(into: poll)
        } else if isOut {
            publish(needsFirstAnswer ? nil : began)
        } else {
            clear(at: now)
        }
        return true
    }

    /// Nothing is enqueued: a beacon that is still busy was left so by a probe whose thread has lost its CPU.
    private func clear(at now: MonotonicInstant) {
        reportedSince = nil
        let word = stall_beacon_word(beacon.pointer)
        guard word >> 56 == UInt64(STALL_LOOP_BUSY) else { return }
        _ = stall_beacon_publish_from(
            beacon.pointer, word, UInt8(STALL_LOOP_WAITING), now.nanoseconds)
    }

    /// In an empty list the probe itself is the new head. Any other new head means that an item has begun meanwhile.
    private func followProbe(into before: ProbeResult) {
        guard let after = target.poll(), after != before else { return }
        if case .working(let head) = before, head != 0 { began = clock() }
        lastPoll = after
    }

    private var needsFirstAnswer: Bool {
        target.mustAnswerFirst && answered.load(ordering: .sequentiallyConsistent) == 0
    }

    /// Publishes that an item has been running since `began`, or that none runs.
    private func publish(_ began: MonotonicInstant?) {
        guard reportedSince != began else { return }
        reportedSince = began
        guard let began else {
            return stall_beacon_publish(
                beacon.pointer, UInt8(STALL_LOOP_WAITING), clock().nanoseconds)
        }
        let word = stall_beacon_word(beacon.pointer)
        // From here on the probe itself updates the beacon when it runs.
        let before = state.compareExchange(
            expected: .pending, desired: .reported, ordering: .sequentiallyConsistent
        ).original
        // The probe may have run since this poll began, or run now. This thread may have lost its CPU meanwhile: even for
        // a moment the watchdog must not see as busy what is over.
        guard before != .none,
            stall_beacon_publish_from(
                beacon.pointer, word, UInt8(STALL_LOOP_BUSY), began.nanoseconds)
        else { return reportedSince = nil }
    }

    private func probe(_ number: UInt64) {
        let now = clock()
        stall_beacon_publish_thread(beacon.pointer, stall_gettid())
        answered.store(max(1, now.nanoseconds), ordering: .sequentiallyConsistent)
        // A concurrent `publish` finds this state, or the word changed.
        let before = state.exchange(.none, ordering: .sequentiallyConsistent)
        guard before == .reported else { return }
        while true {
            let word = stall_beacon_word(beacon.pointer)
            // This thread may have lost its CPU, and the beacon may be busy because of the next probe.
            guard probeNumber.load(ordering: .sequentiallyConsistent) == number else { return }
            let waiting = UInt8(STALL_LOOP_WAITING)
            if stall_beacon_publish_from(beacon.pointer, word, waiting, now.nanoseconds) { return }
        }
    }
}
