// The threads of the Swift cooperative pool. It is exhausted when a task waits for a thread and none takes it.

internal import CLinux
internal import Dispatch
internal import StallCapture
internal import StallDetection
internal import StallModel
internal import Synchronization

/// The cooperative pool under watch. On Linux it is a concurrent queue of Swift's own, as wide as there are CPUs, in
/// front of Dispatch's global queue of default quality of service, whose workers are its threads.
final class PoolPlace: WatchedPlace, HeartbeatTarget, @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches `shown`, and a queue's address is a plain value.
    private let beacon: SharedBeacon
    private let global = DispatchQueue.global()
    /// The address of Swift's queue, which lives for ever; 0 until a task has told it.
    private let pool = Atomic<UInt>(0)
    /// The member that samples show, as long as it lives.
    private var shown: RegisteredThread?

    init(beacon: SharedBeacon) {
        stall_queue_prepare()
        self.beacon = beacon
        Task.detached { [self] in
            let address = UInt(bitPattern: stall_current_queue())
            pool.store(address, ordering: .releasing)
        }
    }

    /// A task waits in one of two lists: in Swift's while all threads that Swift wants are taken, in Dispatch's while
    /// other work of the app has them.
    func look() -> HeartbeatLook? {
        guard let own = UnsafeRawPointer(bitPattern: pool.load(ordering: .acquiring)),
            let shared = global.dispatchObject
        else { return .unknown }
        let (tasks, all) = (stall_queue_look_at(own), stall_queue_look_at(shared))
        guard tasks.is_known else { return .unknown }
        if tasks.is_empty, all.is_empty { return .idle }
        return .working(head: tasks.head &* 31 ^ all.head)
    }

    var mustAnswerFirst: Bool { false }

    func post(_ beat: @escaping @Sendable () -> Void) { Task.detached { beat() } }

    /// One member for all: the one with the lowest id.
    func findThread() -> RegisteredThread? {
        if let shown, !shown.hasEnded { return shown }
        shown = members().min { $0.id.rawValue < $1.id.rawValue }
        if let shown { stall_beacon_publish_thread(beacon.pointer, shown.id.rawValue) }
        return shown
    }

    /// Says on the report how many threads there are.
    func correct(_ word: UInt64, at now: MonotonicInstant) {
        let label = "all \(members().count) threads taken"
        LoopBeacon(beacon.pointer).writeLabel(label)
    }

    func isStarved() -> Bool { PoolThreads.areWaitingForCPU() }
    func members() -> [RegisteredThread] { PoolThreads.all(named: PoolThreads.cooperative) }
}
