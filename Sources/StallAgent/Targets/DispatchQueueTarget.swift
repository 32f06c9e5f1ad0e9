// A Dispatch queue, or what runs on one (the main actor, the cooperative pool), for the probe thread and the watchdog.

internal import CLinux
internal import Dispatch
internal import Glibc
internal import StallCapture
internal import StallModel
internal import StallRunLoop
internal import Synchronization

/// A watched queue. It is not retained: when the app releases it, watching ends.
final class DispatchQueueTarget: MonitoredTarget, ProbeTarget, @unchecked Sendable {
    // Unchecked because of `queue`, which only the runtime changes, to nil and atomically.
    private weak var queue: DispatchQueue?
    /// The main and the global queues are never freed, but each access creates a new Swift object.
    private let permanent: DispatchQueue?
    /// Dispatch's own object, valid while `queue` is.
    private let object: UnsafeRawPointer?
    private let isMain: Bool
    /// The address of a retained reference that the watchdog passed to the probe thread, or 0.
    private let passedOn = Atomic<UInt>(0)
    private let beacon: SharedBeacon
    private let postProbe: @Sendable (DispatchQueue, @escaping @Sendable () -> Void) -> Void

    init(
        _ queue: DispatchQueue, beacon: SharedBeacon,
        post: @escaping @Sendable (DispatchQueue, @escaping @Sendable () -> Void) -> Void
    ) {
        stall_queue_prepare()
        self.queue = queue
        object = queue.dispatchObject
        isMain = object == DispatchQueue.main.dispatchObject
        permanent = isMain || object == DispatchQueue.global().dispatchObject ? queue : nil
        self.beacon = beacon
        postProbe = post
        let phase = isMain ? LoopPhase.mainQueue : .block
        stall_beacon_publish_callout(beacon.pointer, phase.rawValue)
        if let object { _ = stall_watched_queue_add(object, beacon.pointer, phase.rawValue) }
    }

    deinit {
        stall_watched_queue_remove(beacon.pointer)
        releasePassedOn()
    }

    // MARK: The probe thread's side

    func poll() -> ProbeResult? {
        releasePassedOn()
        guard let queue else { return nil }
        return withExtendedLifetime(queue) {
            guard let poll = object.map({ stall_queue_read($0) }), poll.is_known else {
                return .unknown
            }
            if poll.is_suspended { return .halted }
            // While a run loop serves the main queue, the queue always names the main thread as its drainer.
            if isMain, poll.drainer == getpid() {
                if isMainLoopWaiting { return poll.is_empty ? .idle : .halted }
                return .unknown
            }
            return poll.drainer == 0 && poll.is_empty ? .idle : .working(head: poll.head)
        }
    }

    /// A main queue that no thread serves never runs a probe.
    var mustAnswerFirst: Bool { isMain }

    func post(_ probe: @escaping @Sendable () -> Void) {
        guard let queue else { return }
        postProbe(queue, probe)
    }

    private var isMainLoopWaiting: Bool {
        stall_main_foreign_loop_is_waiting() || EventRunLoop.isMainWaiting
    }

    // MARK: The watchdog's side

    func findThread() -> RegisteredThread? {
        guard let queue else { return nil }
        passOn(queue)
        let drainer = withExtendedLifetime(queue) {
            object.map { stall_queue_find_drainer($0) } ?? 0
        }
        // If the queue's fields are unknown, the thread that ran the last probe is the best guess; see `forEachMember`.
        let isKnown = object.map { stall_queue_read($0).is_known } ?? false
        let id = isKnown ? drainer : stall_beacon_thread(beacon.pointer)
        guard id != 0, let thread = try? RegisteredThread.found(ThreadID(rawValue: id)) else {
            return nil
        }
        stall_beacon_publish_thread(beacon.pointer, id)
        return thread
    }

    /// An item waits, no thread has dequeued it, and a worker is runnable: it only lacks a CPU.
    func isStarved() -> Bool { PoolThreads.areWaitingForCPU() }

    func forEachMember(_ body: (RegisteredThread) -> Void) {
        if findThread() == nil { PoolThreads.forEach(body) }
    }

    /// Passes a reference to the queue to the probe thread, which releases it. The watchdog's reference must not be the
    /// last, since the end of a queue frees memory and runs the app's finalizer.
    private func passOn(_ queue: DispatchQueue) {
        let address = UInt(bitPattern: Unmanaged.passRetained(queue).toOpaque())
        let (isPassedOn, _) = passedOn.compareExchange(
            expected: 0, desired: address, ordering: .acquiringAndReleasing)
        // A reference that was passed on before is to the same queue.
        if !isPassedOn { Unmanaged.passUnretained(queue).release() }
    }

    private func releasePassedOn() {
        let address = passedOn.exchange(0, ordering: .acquiringAndReleasing)
        guard let pointer = UnsafeRawPointer(bitPattern: address) else { return }
        Unmanaged<DispatchQueue>.fromOpaque(pointer).release()
    }
}

extension DispatchQueue {
    /// The C object that this one wraps; nil if the Swift overlay has another layout.
    var dispatchObject: UnsafeRawPointer? {
        let wrapped = Mirror(reflecting: self).children.first { $0.label == "__wrapped" }?.value
        return (wrapped as? OpaquePointer).map { UnsafeRawPointer($0) }
    }
}
