// The agent's own log, unless the app gives it another: swift-log's format, on standard error. Without stdio, whose
// lock would be held while a stuck reader is waited for: `exit` and `fflush` take it.

internal import CLinux
internal import Logging

/// Writes lines to standard error and never waits for its reader; lines that it does not take are dropped and counted.
struct StandardErrorLog: LogHandler {
    private let label: String
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    var logLevel = Logger.Level.info

    init(label: String) {
        self.label = label
        metadataProvider = LoggingSystem.metadataProvider
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let line = Line()
        var formatter = StreamLogHandler(label: label, stream: line, metadataProvider: nil)
        formatter.metadata = metadata.merging(metadataProvider?.get() ?? [:]) { $1 }
        formatter.logLevel = logLevel
        // The local time has a lock of libc's.
        stall_fork_defer()
        formatter.log(event: event)
        stall_fork_allow()
        line.text.withUTF8 { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                if let text = $0.baseAddress { stall_standard_error_write(text, $0.count) }
            }
        }
    }
}

/// One line. Confined to the thread that logs it.
private final class Line: TextOutputStream, @unchecked Sendable {
    var text = ""
    func write(_ string: String) { text += string }
}
