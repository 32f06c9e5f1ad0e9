// Tells from outside whether a queue gets on. Nobody can observe a queue's items begin and end, so it is looked at, and
// a probe is put into it only while it is at work: an idle queue is not touched.
//
//     tick: nothing runs ------------------------------------------> nothing to do
//           something runs -> a probe goes in behind what waits
//           the probe is still there, and no item has begun since --> the beacon says busy, from about when it began
//     probe: it runs -----------------------------------------------> the beacon says waiting
//
// While the probe waits, all items before it are different ones, so an unchanged head of the list means that the
// item at work is the same: a long list of short items is never taken for a stall.

internal import CLinux
internal import StallModel
internal import Synchronization

/// What a look at a queue found.
enum ProbeResult: Hashable, Sendable {
    /// Nothing runs that could stall.
    case idle
    /// What waits is not meant to run now: the queue is suspended, or its loop serves another mode.
    case halted
    /// Something runs, or should. `head` names the item that waits longest, 0 when none does.
    case working(head: UInt64)
    /// Nothing can be seen from outside; only a probe tells.
    case unknown
}

/// A queue as its probe sees it. Called on the probe thread.
protocol ProbeTarget: AnyObject, Sendable {
    /// What it looks like now; nil when it is gone for good.
    func poll() -> ProbeResult?
    /// Whether a first probe must have been answered before an unanswered one means anything: it may not be served at
    /// all.
    var mustAnswerFirst: Bool { get }
    /// Puts a probe behind what waits.
    func post(_ probe: @escaping @Sendable () -> Void)
}

/// Who is to say next what the beacon says of the probe that is out.
enum ProbeState: UInt8, AtomicRepresentable {
    /// No probe is out.
    case none
    /// One is out. The beacon does not know of it.
    case pending
    /// One is out, and the beacon may say busy.
    case reported
}

/// One queue's probe. `tick` is called by one thread only; a probe runs wherever the queue runs it.
final class QueueProbe: @unchecked Sendable {
    // Unchecked because all but `state` and `answered` is confined to the thread that ticks.
    let period: Duration
    private let target: any ProbeTarget
    private let beacon: SharedBeacon
    private let clock: @Sendable () -> MonotonicInstant
    private let state = Atomic<ProbeState>(.none)
    /// When the last probe ran, in nanoseconds; 0 until the first one has.
    private let answered = Atomic<UInt64>(0)

    private(set) var nextTick = MonotonicInstant(nanoseconds: 0)
    private var lastTick: MonotonicInstant?
    private var lastPoll = ProbeResult.idle
    /// How often in a row nothing ran.
    private var idlePolls = 0
    /// About when the item began that runs; nil while none does.
    private var began: MonotonicInstant?
    /// Its state as last written to the beacon.
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

    /// An eighth of the threshold: a stall's beginning is known to a sixteenth of it, and the watchdog's first sample,
    /// at half of it, still comes in time. Never below 5 ms nor above 100.
    static func period(threshold: Duration) -> Duration {
        min(max(threshold / 8, .milliseconds(5)), .milliseconds(100))
    }

    /// A queue that has been idle for so many looks is looked at half as often. Less often still, and the watchdog's
    /// first sample would come too late: at a quarter of the threshold it is met, at three eighths known to be busy.
    private static let idlePollsUntilSlow = 40

    /// Looks at the queue. Returns false when it is gone.
    func tick() -> Bool {
        guard let poll = target.poll() else {
            tell(nil)
            return false
        }
        let now = clock()
        // The probe says when it ran: nothing before that can have stalled.
        let answer = MonotonicInstant(nanoseconds: answered.load(ordering: .sequentiallyConsistent))
        let earliest = max(lastTick ?? now, answer)
        // A thread that was kept from ticking cannot tell what happened meanwhile.
        let isBlind = lastTick != nil && now - nextTick > period
        let estimate = isBlind ? now : earliest + (now - earliest) / 2
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

        if !isOut, poll != .halted, poll != .idle || mustAsk {
            reportedSince = nil
            state.store(.pending, ordering: .sequentiallyConsistent)
            target.post { [self] in probe() }
            followProbe(into: poll)
        } else if isOut {
            tell(mustAsk ? nil : began)
        } else {
            reportedSince = nil
        }
        return true
    }

    /// In an empty list the probe itself is the new head. Any other new head is an item that has begun meanwhile.
    private func followProbe(into before: ProbeResult) {
        guard let after = target.poll(), after != before else { return }
        if case .working(let head) = before, head != 0 { began = clock() }
        lastPoll = after
    }

    private var mustAsk: Bool {
        target.mustAnswerFirst && answered.load(ordering: .sequentiallyConsistent) == 0
    }

    /// Lets the beacon say that an item has been at work since `began`, or that none is.
    private func tell(_ began: MonotonicInstant?) {
        guard reportedSince != began else { return }
        reportedSince = began
        guard let began else {
            return stall_beacon_publish(
                beacon.pointer, UInt8(STALL_LOOP_WAITING), clock().nanoseconds)
        }
        // From here on the probe itself says when it is over.
        _ = state.compareExchange(
            expected: .pending, desired: .reported, ordering: .sequentiallyConsistent)
        stall_beacon_publish_awake(beacon.pointer, began.nanoseconds)
        // It may have run in between, and said nothing or said it too early.
        if state.load(ordering: .sequentiallyConsistent) == .none { tell(nil) }
    }

    private func probe() {
        let now = clock()
        stall_beacon_publish_thread(beacon.pointer, stall_gettid())
        if state.load(ordering: .sequentiallyConsistent) == .reported {
            stall_beacon_publish(beacon.pointer, UInt8(STALL_LOOP_WAITING), now.nanoseconds)
        }
        answered.store(max(1, now.nanoseconds), ordering: .sequentiallyConsistent)
        // A tell that came since the look above finds this and takes its word back.
        state.store(.none, ordering: .sequentiallyConsistent)
    }
}
