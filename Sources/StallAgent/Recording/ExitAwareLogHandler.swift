// The app's log handler, until the process has exited: the agent's threads run on while the app's objects are destroyed.

internal import CLinux
internal import Logging
internal import StallRunLoop

/// Passes lines to another handler as long as the app's code may be called.
struct ExitAwareLogHandler: LogHandler {
    private var handler: any LogHandler
    fileprivate var held: HeldLines?

    init(_ handler: any LogHandler) { self.handler = handler }

    var metadata: Logger.Metadata {
        get { handler.metadata }
        set { handler.metadata = newValue }
    }
    var metadataProvider: Logger.MetadataProvider? {
        get { handler.metadataProvider }
        set { handler.metadataProvider = newValue }
    }
    var logLevel: Logger.Level {
        get {
            let waits = stall_fork_begin_wait()
            defer { stall_fork_end_wait(waits) }
            return handler.logLevel
        }
        set { handler.logLevel = newValue }
    }
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { handler[metadataKey: key] }
        set { handler[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        if let held, held.add(event) { return }
        guard !ProcessExit.isOver else { return }
        let waits = stall_fork_begin_wait()
        defer { stall_fork_end_wait(waits) }
        handler.log(event: event)
    }
}

/// Lines that wait until the app's handler may be called; later ones go to it directly.
final class HeldLines: Sendable {
    private let lines = AgentLocked<[LogEvent]?>([])

    fileprivate func add(_ event: LogEvent) -> Bool {
        lines.withLock { lines in
            lines?.append(event)
            return lines != nil
        }
    }

    func pass(to logger: Logger) {
        let held = lines.withLock { lines in
            defer { lines = nil }
            return lines ?? []
        }
        for event in held { logger.handler.log(event: event) }
    }
}

extension Logger {
    /// This logger, silent from the moment on when an exit no longer waits for the agent.
    var untilExit: Logger {
        var logger = self
        logger.handler = ExitAwareLogHandler(handler)
        return logger
    }

    /// This logger, whose lines wait until these are passed on.
    func holding(_ held: HeldLines) -> Logger {
        var (logger, handler) = (self, ExitAwareLogHandler(handler))
        handler.held = held
        logger.handler = handler
        return logger
    }
}
