import CLinux
import Glibc
import Logging
import TestSupport
import Testing

@testable import StallAgent

/// Goal: nothing of a start meets a thread that the Swift runtime takes for another process's.
/// Method: processes of their own, which fork; a child that hangs is ended by SIGALRM, and the parent sees it.
@Suite struct ChildStartTests {
    @Test func `a process that was not forked starts on the calling thread`() async {
        await #expect(processExitsWith: .success) {
            let caller = stall_gettid()
            nonisolated(unsafe) var starts: [Int32] = []
            ChildStart.run(.silent) { _ in starts.append(stall_gettid()) }
            exit(stall_runtime_knows_thread() && starts == [caller] ? 0 : 1)
        }
    }

    @Test func `a forked child starts on a thread that the runtime knows, and once`() async {
        await #expect(processExitsWith: .success) {
            // The runtime has read the id of the parent's thread.
            guard stall_runtime_knows_thread() else { exit(1) }
            let child = forkProcess {
                guard !stall_runtime_knows_thread() else { return 2 }
                nonisolated(unsafe) var known: [Bool] = []
                ChildStart.run(.silent) { _ in known.append(stall_runtime_knows_thread()) }
                return known == [true] ? 0 : 3
            }
            exit(child > 0 && wait(for: child) == 0 ? 0 : 4)
        }
    }

    /// A log handler may take a lock that the caller holds.
    @Test func `lines of a child's start are logged by the caller, after it`() async {
        await #expect(processExitsWith: .success) {
            guard stall_runtime_knows_thread() else { exit(1) }
            let child = forkProcess {
                let caller = stall_gettid()
                nonisolated(unsafe) var found: [String] = []
                nonisolated(unsafe) var kept: Logger?
                let logger = Logger(label: "test") { _ in
                    Lines { line in found.append("\(line) \(stall_gettid() == caller)") }
                }
                ChildStart.run(logger.untilExit) { logger in
                    logger.warning("one")
                    kept = logger
                    found.append("start")
                }
                kept?.warning("two")
                return found == ["start", "one true", "two true"] ? 0 : 2
            }
            exit(child > 0 && wait(for: child) == 0 ? 0 : 3)
        }
    }
}

private struct Lines: LogHandler {
    let write: @Sendable (String) -> Void
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    init(_ write: @escaping @Sendable (String) -> Void) { self.write = write }

    func log(event: LogEvent) { write("\(event.message)") }
}

extension Logger {
    fileprivate static var silent: Logger {
        Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    }
}
