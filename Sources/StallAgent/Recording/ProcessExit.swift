// At `exit` and at the return from `main`: records the true ends of stalls that are open or have just ended. The exit
// waits for that, up to a limit.

internal import CLinux
internal import Glibc
internal import StallDetection
internal import Synchronization

/// The monitors that must be stopped when the process exits.
enum ProcessExit {
    private struct State {
        /// Retained: an app may release its monitor, whose threads continue.
        var monitors: [StallMonitor] = []
        /// The process that registered the handler. A forked child inherits the handler, but none of the threads.
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
        stall_process_record_note_exit()
        // A stuck disk or callback must not keep the process alive. What is not in the store by then is in the process
        // record.
        let thread = AgentThread(name: "stall-exit") {
            for monitor in monitors { monitor.stop() }
        }
        if let thread, !thread.join(within: limit) { thread.detach() }
    }
}
