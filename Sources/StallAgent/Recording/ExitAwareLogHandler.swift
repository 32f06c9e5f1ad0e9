// The app's log handler, until the process has exited: the agent's threads run on while the app's objects are destroyed.

internal import Logging

/// Passes lines to another handler as long as the app's code may be called.
struct ExitAwareLogHandler: LogHandler {
    private var handler: any LogHandler

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
        get { handler.logLevel }
        set { handler.logLevel = newValue }
    }
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { handler[metadataKey: key] }
        set { handler[metadataKey: key] = newValue }
    }

    func log(event: LogEvent) {
        if !ProcessExit.isOver { handler.log(event: event) }
    }
}

extension Logger {
    /// This logger, silent from the moment on when an exit no longer waits for the agent.
    var untilExit: Logger {
        var logger = self
        logger.handler = ExitAwareLogHandler(handler)
        return logger
    }
}
