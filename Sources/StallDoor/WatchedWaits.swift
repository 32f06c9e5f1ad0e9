// A loop of any library, by the waits of its thread: GLib's, GTK's, Qt's, libuv's, one of the app's own. The door is
// linked only into programs that import this module.

internal import CEpollDoor
internal import CLinux
public import StallAgent
internal import Synchronization

extension StallMonitor {
    /// Watches the loop that the calling thread is about to run: between two of its waits in epoll_wait, poll, ppoll,
    /// select or their siblings it is busy.
    ///
    ///     monitor.watchWaits(ofCurrentThreadAs: "gtk")
    ///     g_application_run(app, argc, argv)
    ///
    /// Call it on the loop's thread, right before the loop runs: its first wait is taken for the loop's, and known
    /// again by its epoll descriptor, or by where it is called from and what it waits for. Any other wait on the thread
    /// is work. Watching ends with the thread, or with ``WatchedWaits/stop()``; a loop that is left is not stalled once
    /// that was called.
    ///
    /// - Parameters:
    ///   - name: What reports call it.
    ///   - threshold: How long it may be busy; the configuration's threshold when nil. At least 20 ms.
    @discardableResult
    public func watchWaits(ofCurrentThreadAs name: String, threshold: Duration? = nil)
        -> WatchedWaits
    {
        guard isWatching, let beacon = stall_beacon_create() else { return WatchedWaits(nil, nil) }
        defer { stall_beacon_release(beacon) }
        guard let door = stall_door_open(beacon) else { return WatchedWaits(nil, nil) }
        let shared = Door(door)
        let watch = watchThisThread(
            beacon, as: name, threshold: threshold, way: "waits", detach: { shared.close() })
        return WatchedWaits(watch, shared)
    }
}

/// A loop that is watched by its waits, from ``StallAgent/StallMonitor/watchWaits(ofCurrentThreadAs:threshold:)``.
///
/// **Thread safety:** may be used on any thread. Letting it go does not end the watch.
public final class WatchedWaits: Sendable {
    private let watch: OutsideWatch?
    private let door: Door?

    init(_ watch: OutsideWatch?, _ door: Door?) {
        self.watch = watch
        self.door = door
    }

    /// How often the loop has come to its wait. It stays 0 where the library does not wait through libc: io_uring, a
    /// static libc, calls of the kernel's own.
    public var waitCount: UInt64 { door?.crossings ?? 0 }

    /// Ends the watch.
    public func stop() { watch?.stop() }
}

/// A counted reference to a thread's door.
final class Door: Sendable {
    private struct State: @unchecked Sendable {
        // Unchecked because a pointer is: the lock around it keeps it from being used after `close`.
        var door: OpaquePointer?
        var crossings: UInt64 = 0
    }
    private let state: Mutex<State>

    init(_ door: OpaquePointer) { state = Mutex(State(door: door)) }

    deinit { close() }

    var crossings: UInt64 {
        state.withLock { $0.door.map(stall_door_crossings) ?? $0.crossings }
    }

    func close() {
        state.withLock { state in
            guard let door = state.door.take() else { return }
            state.crossings = stall_door_crossings(door)
            stall_door_close(door)
        }
    }
}
