// What `exit` and a return from `main` owe the store: the stalls that are open or hardly over, with their true ends.
// The exit waits for that as long as it must be, and no longer.

internal import CLinux
internal import Glibc
internal import StallDetection
internal import Synchronization

/// The monitors that a process which exits has to stop.
enum ProcessExit {
    private struct State {
        /// Kept alive: an app may drop its monitor, whose threads go on.
        var monitors: [StallMonitor] = []
        /// The process that the handler was registered in; a forked child has it, too, and none of the threads.
        var process: pid_t = 0
    }

    private static let state = Mutex(State())
    /// How long an exit waits for the store.
    private static let limit = Duration.milliseconds(100)

    /// Stops the monitor when the process exits.
    static func stop(_ monitor: StallMonitor) {
        let isFirst = state.withLock { state in
            if state.process != getpid() { state.monitors = [] }
            state.monitors.append(monitor)
            defer { state.process = getpid() }
            return state.process == 0
        }
        if isFirst { atexit { ProcessExit.stopAll() } }
    }

    static func forget(_ monitor: StallMonitor) {
        state.withLock { state in state.monitors.removeAll { $0 === monitor } }
    }

    private static func stopAll() {
        let monitors = state.withLock { state in
            state.process == getpid() ? state.monitors : []
        }
        guard !monitors.isEmpty else { return }
        stall_last_words_note_exit()
        // What is stuck, the disk or a callback, must not keep the process: what then is not in the store is in the
        // last words.
        let thread = AgentThread(name: "stall-exit") {
            for monitor in monitors { monitor.stop() }
        }
        if let thread, !thread.join(within: limit) { thread.detach() }
    }
}
