// The targets of a monitor. Watching the same target again replaces its registration; stopping ends all.

internal import Dispatch
internal import StallDetection
internal import StallModel
internal import StallRunLoop

/// Identifies a target. Two registrations of one target are one.
enum RegistrationKey: Hashable, Sendable {
    case eventRunLoop(ThreadID)
    case foundationRunLoop(ThreadID)
    case queue(UInt)
    case mainActor
    case cooperativePool
    /// A thread can mark several kinds of work.
    case marked(UInt)
    /// A target whose beacon another module writes.
    case outside(UInt)
    /// A thread's loop that another module watches, any number of times.
    case loopThread(ObjectIdentifier)
    /// A target for threads that run jobs of tasks.
    case worker(Int32)
    /// A thread of the agent's task executor.
    case executorThread(Int)

    /// The address of the Dispatch queue that is watched, or on which the target runs.
    var queue: UInt? {
        switch self {
        case .queue(let address): address
        case .mainActor: DispatchQueue.main.dispatchObject.map { UInt(bitPattern: $0) }
        default: nil
        }
    }
}

/// One watched target.
struct Registration: Sendable {
    let loop: WatchedLoop
    let name: String
    /// The threshold passed to `watch`.
    let threshold: Duration?
    /// The thread whose activity labels it carries, if that never changes.
    let thread: ThreadID?
    /// Of its beacon, or of the Dispatch queue that it watches: calls that may block are noted under it.
    let address: UInt
    /// Removes what was installed in the app: observers, probes.
    let detach: @Sendable () -> Void
}

/// The registrations of one monitor.
final class RegistrationList: Sendable {
    private struct State {
        var watches: [RegistrationKey: Registration] = [:]
        var isClosed = false
        /// The last targets that ended: a call of a thread that ends is reported when the thread may be gone.
        var ended: [(address: UInt, name: String)] = []
        private static let endedLimit = 128

        mutating func remove(_ key: RegistrationKey) -> Registration? {
            guard let watch = watches.removeValue(forKey: key) else { return nil }
            keepName(of: watch)
            return watch
        }

        mutating func keepName(of watch: Registration) {
            if ended.count == Self.endedLimit { ended.removeFirst() }
            ended.append((watch.address, watch.name))
        }
    }
    private let state = AgentLocked(State())

    /// Adds a registration. Returns the one that it replaces, or itself if the monitor has stopped; the caller must end
    /// either.
    func insert(_ watch: Registration, for key: RegistrationKey) -> Registration? {
        state.withLock { $0.isClosed ? watch : $0.watches.updateValue(watch, forKey: key) }
    }

    func remove(_ key: RegistrationKey, ifItIs loop: WatchedLoop) -> Registration? {
        state.withLock { state in
            state.watches[key]?.loop === loop ? state.remove(key) : nil
        }
    }

    func remove(_ key: RegistrationKey) -> Registration? { state.withLock { $0.remove(key) } }

    /// Removes and returns all registrations; later ones are refused.
    func close() -> [Registration] {
        state.withLock { state in
            defer { state.watches = [:] }
            state.isClosed = true
            for watch in state.watches.values { state.keepName(of: watch) }
            return Array(state.watches.values)
        }
    }

    /// The monitor has stopped.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    subscript(key: RegistrationKey) -> WatchedLoop? { state.withLock { $0.watches[key]?.loop } }

    /// All current registrations.
    var all: [Registration] { state.withLock { Array($0.watches.values) } }

    /// The name of the target that this beacon or queue is of, or was: the memory of one that has ended may be another's by
    /// now.
    func name(of target: UInt) -> String? {
        state.withLock { state in
            state.watches.values.first { $0.address == target }?.name
                ?? state.ended.last { $0.address == target }?.name
        }
    }

    /// The beacons of the work on this thread.
    func beacons(of thread: ThreadID) -> [LoopBeacon] {
        state.withLock { state in
            state.watches.filter { key, watch in
                switch key {
                case .worker, .executorThread: watch.loop.beacon.thread == thread
                default: watch.thread == thread
                }
            }.map(\.value.loop.beacon)
        }
    }
}
