// Threads whose waits are intercepted elsewhere, by the object that `stallctl run` loads into a program.

internal import CEpollDoor
internal import CLinux
package import StallAgent

extension StallMonitor {
    /// Watches the loop of the calling thread, of which `stall_door_told_enter` and `stall_door_told_leave` report each
    /// wait. Nil if no agent runs here, or without memory.
    ///
    /// - Parameters:
    ///   - name: The target's name in reports.
    ///   - isOver: Whether the thread has left its loop for good. Called on the watchdog's thread while the thread is
    ///     busy: it must neither allocate nor wait.
    package func watchToldWaits(
        as name: String, isOver: @escaping @Sendable () -> Bool
    ) -> WatchedWaits? {
        guard isWatching, let door = stall_door_open(UInt64(STALL_DOOR_TOLD)) else { return nil }
        let shared = Door(door)
        let watch = watchThisThread(
            stall_door_beacon(door), as: name, threshold: nil, way: "waits",
            isWaitingUnseen: { _ in isOver() }, detach: { shared.close() })
        return WatchedWaits(watch, shared)
    }
}
