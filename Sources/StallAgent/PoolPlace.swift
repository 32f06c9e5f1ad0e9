// The threads of the Swift cooperative pool. It is exhausted when something waits for a thread and none takes it.

internal import CLinux
internal import Dispatch
internal import StallCapture
internal import StallModel
internal import Synchronization

/// The cooperative pool under watch. On Linux it is Dispatch's global queue of default quality of service.
final class PoolPlace: WatchedPlace, HeartbeatTarget, @unchecked Sendable {
    // Unchecked because only the watchdog's thread touches `stuck`.
    private let queue: QueuePlace
    private let beacon: SharedBeacon
    /// The member that samples show, as long as the same incident lasts.
    private var stuck: RegisteredThread?

    init(beacon: SharedBeacon) {
        self.beacon = beacon
        queue = QueuePlace(DispatchQueue.global(), beacon: beacon) { _, beat in
            Task.detached { beat() }
        }
    }

    func look() -> HeartbeatLook? { queue.look() }
    var mustAnswerFirst: Bool { false }
    func post(_ beat: @escaping @Sendable () -> Void) { queue.post(beat) }

    /// One member for all: the one with the lowest id, for as long as it lives.
    func findThread() -> RegisteredThread? {
        if let stuck, !stuck.hasEnded { return stuck }
        stuck = members().min { $0.id.rawValue < $1.id.rawValue }
        if let stuck { stall_beacon_publish_thread(beacon.pointer, stuck.id.rawValue) }
        return stuck
    }

    func isStarved() -> Bool { queue.isStarved() }
    func members() -> [RegisteredThread] { PoolThreads.all(named: PoolThreads.cooperative) }
}
