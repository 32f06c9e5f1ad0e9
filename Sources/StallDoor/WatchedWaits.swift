// Watches a loop of any library by the waits of its thread: GLib, GTK, Qt, libuv, or a loop of the app. Only programs
// that import this module link the interposed wait functions.

internal import CEpollDoor
internal import CLinux
public import StallAgent
internal import StallRunLoop

extension StallMonitor {
    /// Watches the loop that the calling thread is about to run: between two of its waits in epoll_wait, poll, ppoll,
    /// select or their siblings it is busy.
    ///
    ///     monitor.watchWaits(ofCurrentThreadAs: "gtk")
    ///     g_application_run(app, argc, argv)
    ///
    /// Call it on the loop's thread, right before the loop runs: the first wait is assumed to be the loop's. It is
    /// recognized by its epoll descriptor, or by its call site and descriptors. Any other wait on the thread counts as
    /// work. Watching ends with the thread or with ``WatchedWaits/stop()``; call that when you leave the loop, or the
    /// thread's later work counts as a stall.
    ///
    /// A loop may be watched several times, by a library and its app: it remains one target, with the name of the last
    /// watch and the shortest threshold, until all have ended.
    ///
    /// - Parameters:
    ///   - name: The target's name in reports.
    ///   - threshold: How long it may be busy; the configuration's threshold if nil. At least 20 ms.
    @discardableResult
    public func watchWaits(ofCurrentThreadAs name: String, threshold: Duration? = nil)
        -> WatchedWaits
    {
        watchWaits(as: name, threshold, calls: UInt64(STALL_DOOR_ANY))
    }

    /// Watches the loop that runs the caller by its waits in epoll_wait: it is busy from now on.
    ///
    /// - Parameter isWaiting: Whether a thread waits for events in the kernel, by its gettid value; nil if that cannot be
    ///   read. Called on the watchdog's thread as long as no wait was observed: it must neither allocate nor wait.
    package func watchWaits(
        ofRunningLoopAs name: String, threshold: Duration?,
        isWaiting: @escaping @Sendable (Int32) -> Bool?
    ) -> WatchedWaits {
        watchWaits(as: name, threshold, calls: UInt64(STALL_DOOR_EPOLL), isWaiting: isWaiting)
    }

    private func watchWaits(
        as name: String, _ threshold: Duration?, calls: UInt64,
        isWaiting: (@Sendable (Int32) -> Bool?)? = nil
    ) -> WatchedWaits {
        guard isWatching, let door = stall_door_open(calls) else { return WatchedWaits(nil, nil) }
        let shared = Door(door)
        let beacon = stall_door_beacon(door)
        var isWaitingUnseen: (@Sendable (UInt64) -> Bool?)?
        if let isWaiting, stall_door_crossings(door) == 0 {
            if stall_beacon_word(beacon) >> 56 == UInt64(STALL_LOOP_IDLE) {
                stall_beacon_publish_awake(beacon, stall_monotonic_ns())
            }
            // The first wait that is observed changes it.
            let (first, thread) = (stall_beacon_word(beacon), stall_gettid())
            isWaitingUnseen = { $0 == first ? isWaiting(thread) : false }
        }
        let watch = watchThisThread(
            beacon, as: name, threshold: threshold, way: "waits", isWaitingUnseen: isWaitingUnseen,
            detach: { shared.close() })
        return WatchedWaits(watch, shared)
    }
}

/// A loop that is watched by its waits, from ``StallAgent/StallMonitor/watchWaits(ofCurrentThreadAs:threshold:)``.
///
/// **Thread safety:** may be used on any thread. Releasing it does not end the watch.
public final class WatchedWaits: Sendable {
    private let watch: ExternalWatch?
    private let door: Door?

    init(_ watch: ExternalWatch?, _ door: Door?) {
        self.watch = watch
        self.door = door
    }

    /// The number of the loop's waits seen so far. It stays 0 if the library does not wait through libc: io_uring, a
    /// static libc, direct system calls.
    public var waitCount: UInt64 { door?.crossings ?? 0 }

    /// Whether this watch, or the loop's thread, has ended.
    package var hasStopped: Bool { door?.isClosed ?? true }

    /// Whether the thread was seen waiting in the kernel although none of its waits had been observed.
    package var isBypassed: Bool { watch?.isBypassed ?? false }

    /// Polls the thread from now on, since its waits are not observable, for all that watch it. False if it is polled
    /// already.
    package func poll(
        way: String, idleCheck: @escaping @Sendable () -> Bool?,
        post: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) -> Bool {
        watch?.poll(way: way, idleCheck: idleCheck, post: post) ?? false
    }

    /// Makes reports name the task that runs on the loop's thread, if tasks do. Call it on that thread.
    package func learnTask() { watch?.learnTask() }

    /// Ends the watch.
    public func stop() { watch?.stop() }
}

/// Owns the watcher's reference to a thread's door.
final class Door: Sendable {
    private struct State: @unchecked Sendable {
        // Unchecked because of the pointer: the lock prevents its use after `close`.
        var door: OpaquePointer?
        var crossings: UInt64 = 0
    }
    private let state: AgentLocked<State>

    init(_ door: OpaquePointer) { state = AgentLocked(State(door: door)) }

    deinit { close() }

    var crossings: UInt64 {
        state.withLock { $0.door.map(stall_door_crossings) ?? $0.crossings }
    }

    var isClosed: Bool { state.withLock { $0.door == nil } }

    func close() {
        state.withLock { state in
            guard let door = state.door.take() else { return }
            state.crossings = stall_door_crossings(door)
            stall_door_close(door)
        }
    }
}
