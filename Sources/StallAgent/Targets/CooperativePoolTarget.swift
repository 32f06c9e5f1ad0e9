// The threads of the Swift cooperative pool. It is exhausted if a task waits for a thread and none becomes free.

internal import CLinux
internal import Dispatch
internal import StallCapture
internal import StallDetection
internal import StallModel
internal import Synchronization

/// The watched cooperative pool. On Linux it is a concurrent queue of the Swift runtime, as wide as there are CPUs, in
/// front of Dispatch's global queue of default quality of service, whose workers are its threads.
final class CooperativePoolTarget: MonitoredTarget, ProbeTarget, @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches `shown`, and a queue's address is a plain value.
    private let beacon: SharedBeacon
    /// Dispatch's own object of the global queue; never freed.
    private let shared = DispatchQueue.global().dispatchObject
    /// The address of Swift's queue, which is never freed; 0 until a task has stored it.
    private let pool = Atomic<UInt>(0)
    /// The probe's own item in a list; 0 if unknown, or after it has run.
    private let probeItem = Atomic<UInt64>(0)
    /// Odd while a probe is enqueued.
    private let probeNumber = Atomic<UInt64>(0)
    /// The member that samples show, while it is busy.
    private var shown: RegisteredThread?

    init(beacon: SharedBeacon) {
        stall_queue_prepare()
        self.beacon = beacon
        Task.detached { [self] in
            let address = UInt(bitPattern: stall_current_queue())
            pool.store(address, ordering: .releasing)
        }
    }

    /// A task waits in one of two lists: in Swift's while all threads that Swift wants are occupied, in Dispatch's
    /// while other work of the app occupies them. Only the first list shows whether the pool makes progress: if its own
    /// workers are blocked for about half a second, Dispatch adds one, which finds the pool's width used up and leaves.
    func poll() -> ProbeResult? {
        guard let (tasks, all) = lists else { return .unknown }
        let list = tasks.is_empty ? all : tasks
        if list.is_empty { return .idle }
        // Only this probe waits: all threads may be occupied, but no task is delayed.
        let probe = probeItem.load(ordering: .acquiring)
        if probe != 0, list.head == probe, list.tail == probe { return .idle }
        return .working(head: list.head)
    }

    private var lists: (tasks: stall_queue_snapshot, all: stall_queue_snapshot)? {
        guard let own = UnsafeRawPointer(bitPattern: pool.load(ordering: .acquiring)),
            let shared
        else { return nil }
        let (tasks, all) = (stall_queue_read(own), stall_queue_read(shared))
        return tasks.is_known ? (tasks, all) : nil
    }

    var mustAnswerFirst: Bool { false }

    /// The probe's item appears as the new tail of the list that it waits in.
    func post(_ probe: @escaping @Sendable () -> Void) {
        let before = lists
        probeItem.store(0, ordering: .releasing)
        let number = probeNumber.add(1, ordering: .relaxed).newValue
        Task.detached { [self] in
            // A later item may reuse this one's address.
            probeNumber.add(1, ordering: .relaxed)
            probeItem.store(0, ordering: .releasing)
            probe()
        }
        guard let before, let after = lists else { return }
        let item =
            after.tasks.tail != before.tasks.tail
            ? after.tasks.tail : after.all.tail != before.all.tail ? after.all.tail : 0
        probeItem.store(item, ordering: .releasing)
        // The probe may have run in between.
        if probeNumber.load(ordering: .relaxed) != number {
            probeItem.store(0, ordering: .releasing)
        }
    }

    /// One member stands for all: the busy one with the lowest id.
    func findThread() -> RegisteredThread? {
        if let shown, !shown.hasEnded, PoolThreads.isCooperative(shown.id), !isIdle(shown) {
            return shown
        }
        shown = nil
        // `forEachMember` visits in order of thread id.
        forEachMember { if shown == nil { shown = $0 } }
        if let shown { stall_beacon_publish_thread(beacon.pointer, shown.id.rawValue) }
        return shown
    }

    /// Writes the number of threads into the label. While jobs are watched, the threads that run them are reported
    /// themselves.
    func correct(_ word: UInt64, at now: MonotonicInstant) -> Bool {
        let own = UnsafeRawPointer(bitPattern: pool.load(ordering: .acquiring))
        if stall_jobs_are_marked(), stall_jobs_running_in(own) > 0 {
            beacon.correct(word, to: UInt8(STALL_LOOP_WAITING), at: now)
            return true
        }
        var count: UInt32 = 0
        forEachMember { _ in count += 1 }
        stall_pool_write_label(beacon.pointer, count)
        return true
    }

    func isStarved() -> Bool { PoolThreads.areWaitingForCPU() }

    /// The busy threads: idle workers block nothing.
    func forEachMember(_ body: (RegisteredThread) -> Void) {
        PoolThreads.forEachCooperative { if !isIdle($0) { body($0) } }
    }

    private func isIdle(_ thread: RegisteredThread) -> Bool {
        guard let shared else { return false }
        return stall_queue_worker_is_idle(shared, thread.id.rawValue)
    }
}
