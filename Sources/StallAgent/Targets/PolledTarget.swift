// A thread that is polled from outside, or a pool of threads: nothing in the app announces its work.

internal import CLinux
internal import StallCapture
internal import StallDetection
internal import StallModel
internal import Synchronization

/// A polled target. A stall of a pool means that an item waits while every thread is occupied.
final class PolledTarget: MonitoredTarget, ProbeTarget, @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches `known` and `delays`.
    enum Threads: Sendable {
        case one(ThreadID)
        case named(StaticString)
    }
    private let threads: Threads
    private let beacon: SharedBeacon
    private let way: String
    private let idleCheck: @Sendable () -> Bool?
    private let postProbe: @Sendable (@escaping @Sendable () -> Void) -> Void
    private var known: RegisteredThread?
    private var delays = MemberDelays()
    /// The number of consecutive polls that found it busy.
    private let busyPolls = Atomic<Int>(0)

    init(
        _ threads: Threads, beacon: SharedBeacon, way: String,
        idleCheck: @escaping @Sendable () -> Bool?,
        post: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        self.threads = threads
        self.beacon = beacon
        self.way = way
        self.idleCheck = idleCheck
        postProbe = post
    }

    /// A single poll may find any loop busy, and a probe wakes an idle loop. So only a loop that is busy at two
    /// consecutive polls gets a probe. A pool does not show whether work waits: it always gets one.
    func poll() -> ProbeResult? {
        guard case .one = threads else { return .unknown }
        guard let isIdle = idleCheck() else { return nil }
        if isIdle {
            busyPolls.store(0, ordering: .relaxed)
            return .idle
        }
        return busyPolls.add(1, ordering: .relaxed).newValue > 1 ? .working(head: 0) : .idle
    }

    var mustAnswerFirst: Bool { false }
    func post(_ probe: @escaping @Sendable () -> Void) { postProbe(probe) }

    func findThread() -> RegisteredThread? {
        if let known, !known.hasEnded { return known }
        switch threads {
        case .one(let id): known = try? RegisteredThread.found(id)
        case .named: known = firstMember
        }
        if let known { stall_beacon_publish_thread(beacon.pointer, known.id.rawValue) }
        return known
    }

    /// `forEachMember` visits in order of thread id.
    private var firstMember: RegisteredThread? {
        var first: RegisteredThread?
        forEachMember { if first == nil { first = $0 } }
        return first
    }

    /// An idle thread of a pool that gets no CPU leaves work waiting although the pool is not exhausted, and which
    /// thread that was is known only when it has taken the work. So the waits of all of them count.
    func groupDelay() -> GroupDelay? {
        guard case .named(let text) = threads else { return nil }
        return delays.read(at: MonotonicInstant(nanoseconds: stall_monotonic_ns())) { visit in
            StackSampler.forEachThread { id in
                if isThread(id, withNameHolding: text) { visit(id) }
            }
        }
    }

    func forEachMember(_ body: (RegisteredThread) -> Void) {
        guard case .named(let text) = threads else { return }
        StackSampler.forEachThread { id in
            guard isThread(id, withNameHolding: text) else { return }
            if let thread = try? RegisteredThread.found(id) { body(thread) }
        }
    }

    func modeName(_ number: UInt32) -> String? { way }

    func correct(_ word: UInt64, at now: MonotonicInstant) -> Bool {
        if case .one = threads, known?.hasEnded == true {
            beacon.correct(word, to: UInt8(STALL_LOOP_IDLE), at: now)
        }
        return true
    }

    var openWorkThread: ThreadID? {
        if case .one(let id) = threads { id } else { nil }
    }
}
