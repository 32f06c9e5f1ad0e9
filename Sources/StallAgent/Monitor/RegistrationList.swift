// What a monitor watches, so that watching the same thing again replaces it and stopping ends it all.

internal import StallDetection
internal import StallModel
internal import Synchronization

/// What is watched. Two watches of one thing are one.
enum RegistrationKey: Hashable, Sendable {
    case eventRunLoop(ThreadID)
    case foundationRunLoop(ThreadID)
    case queue(UInt)
    case mainActor
    case cooperativePool
    /// A thread may mark several kinds of work.
    case marked(UInt)
    /// What another module writes the beacon of.
    case outside(UInt)
    /// A target for threads that run jobs of tasks.
    case worker(Int32)
}

/// One watch.
struct Registration: Sendable {
    let loop: WatchedLoop
    let name: String
    /// The threshold that was asked for.
    let threshold: Duration?
    /// The thread whose labels it carries, when it is always the same.
    let thread: ThreadID?
    /// Takes away what was put into the app: observers, probes.
    let detach: @Sendable () -> Void
}

/// The watches of one monitor.
final class RegistrationList: Sendable {
    private struct State {
        var watches: [RegistrationKey: Registration] = [:]
        var isClosed = false
    }
    private let state = Mutex(State())

    /// Adds a watch. Returns the one that it replaces, or itself when the monitor has stopped; either is to be ended.
    func insert(_ watch: Registration, for key: RegistrationKey) -> Registration? {
        state.withLock { $0.isClosed ? watch : $0.watches.updateValue(watch, forKey: key) }
    }

    func remove(_ key: RegistrationKey, ifItIs loop: WatchedLoop) -> Registration? {
        state.withLock { state in
            state.watches[key]?.loop === loop ? state.watches.removeValue(forKey: key) : nil
        }
    }

    func remove(_ key: RegistrationKey) -> Registration? {
        state.withLock { $0.watches.removeValue(forKey: key) }
    }

    /// Takes all of them; none is added any more.
    func close() -> [Registration] {
        state.withLock { state in
            defer { state.watches = [:] }
            state.isClosed = true
            return Array(state.watches.values)
        }
    }

    /// The monitor has stopped.
    var isClosed: Bool { state.withLock { $0.isClosed } }

    subscript(key: RegistrationKey) -> WatchedLoop? { state.withLock { $0.watches[key]?.loop } }

    /// All watches at this moment.
    var all: [Registration] { state.withLock { Array($0.watches.values) } }

    /// The beacons of what this thread does.
    func beacons(of thread: ThreadID) -> [LoopBeacon] {
        state.withLock { state in
            state.watches.filter { key, watch in
                if case .worker = key { return watch.loop.beacon.thread == thread }
                return watch.thread == thread
            }.map(\.value.loop.beacon)
        }
    }
}
