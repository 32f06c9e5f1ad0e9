// Notifies systemd that the app is ready and alive: WATCHDOG=1 is sent only while every watched loop makes progress.

internal import CLinux
internal import Glibc
internal import StallDetection
internal import StallModel
internal import StallRunLoop
internal import Synchronization

/// Sends messages to the socket in `NOTIFY_SOCKET` (sd_notify(3)) on a thread of its own.
final class SystemdNotifier: Sendable {
    private struct Wakeup: @unchecked Sendable { let pointer: UnsafeMutablePointer<stall_wakeup> }

    private let socket: String
    private let wakeup: Wakeup?
    private let isStopped = Atomic<Bool>(false)
    private let thread = AgentLocked<AgentThread?>(nil)

    /// systemd's request; nil without one.
    struct Request: Equatable {
        var socket: String
        /// The watchdog timeout; nil without `WatchdogSec=`.
        var deadline: Duration?

        static let variables = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]

        init?(_ environment: [String: String], process: Int32) {
            guard let socket = environment["NOTIFY_SOCKET"], socket.count > 1,
                socket.hasPrefix("/") || socket.hasPrefix("@")
            else { return nil }
            self.socket = socket
            guard let text = environment["WATCHDOG_USEC"], let microseconds = Int64(text),
                microseconds > 0
            else { return }
            // The variables may be meant for the parent process.
            if let owner = environment["WATCHDOG_PID"], owner != "\(process)" { return }
            deadline = .microseconds(microseconds)
        }

        /// Four messages per deadline: withholding one during a short stall does not end the app.
        var period: Duration? { deadline.map { max($0 / 4, .milliseconds(1)) } }
    }

    /// - Parameter isAlive: Called on the notifier's thread before each message.
    init(_ request: Request, isAlive: @escaping @Sendable () -> Bool) {
        socket = request.socket
        wakeup = stall_wakeup_create().map { Wakeup(pointer: $0) }
        send("READY=1")
        guard let period = request.period, let wakeup else { return }
        let thread = AgentThread(name: "stall-systemd") { [self] in
            var due = MonotonicInstant(nanoseconds: stall_monotonic_ns())
            while true {
                stall_wakeup_prepare(wakeup.pointer, UInt32(STALL_WATCHDOG_TIMED_WAIT))
                if isStopped.load(ordering: .acquiring) { return }
                if isAlive() { send("WATCHDOG=1") }
                due = max(due + period, MonotonicInstant(nanoseconds: stall_monotonic_ns()))
                stall_wakeup_wait(
                    wakeup.pointer, UInt32(STALL_WATCHDOG_TIMED_WAIT), due.nanoseconds)
            }
        }
        self.thread.withLock { $0 = thread }
    }

    /// Sends STOPPING=1 and ends the thread.
    func stop() {
        guard !isStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
        send("STOPPING=1")
        guard let thread = thread.withLock({ $0.take() }), let wakeup else { return }
        stall_wakeup_signal(wakeup.pointer)
        if !thread.join(within: .seconds(1)) { thread.detach() }
    }

    private func send(_ text: String) { _ = stall_datagram_send(socket, text) }
}

extension StallMonitor {
    /// Notifies systemd that the service is ready, and from then on that it is alive, while it is: `Type=notify` and
    /// `WatchdogSec=` in its unit. Call it when the app accepts requests.
    ///
    /// `WATCHDOG=1` is sent four times per deadline, while no watched loop has been busy for its threshold and the
    /// agent's own watchdog is not overdue. If a loop stalls for the whole deadline, systemd ends the service; its
    /// report is in the store by then, since it is written at the threshold. A short stall withholds one message of
    /// four.
    ///
    /// - Returns: Whether systemd requested notifications: without `NOTIFY_SOCKET` this does nothing.
    @discardableResult
    public func notifiesSystemd() -> Bool {
        let environment = processEnvironment(SystemdNotifier.Request.variables)
        guard let agent, !watches.isClosed,
            let request = SystemdNotifier.Request(environment, process: getpid())
        else { return false }
        let notifier = SystemdNotifier(request) { [weak self] in self?.isMakingProgress ?? false }
        let before = agent.systemd.withLock { systemd in
            defer { systemd = notifier }
            return systemd
        }
        before?.stop()
        return true
    }

    /// No watched loop has been busy for its threshold, and the watchdog is not overdue.
    private var isMakingProgress: Bool {
        guard let agent else { return false }
        let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        if agent.watchdog.delay(at: now) > .seconds(5) { return false }
        return watches.all.allSatisfy { watch in
            let reading = watch.loop.beacon.read(at: now)
            return reading.status != .busy
                || now - reading.since < effectiveThreshold(watch.threshold, of: watch.name)
        }
    }
}
