// Watches the operator's settings file with inotify, on a thread of its own.

internal import CLinux
internal import Glibc
internal import Logging
internal import StallDetection

/// Reads a settings file at the start and at every change. An invalid file changes nothing and is logged once.
final class SettingsFile: Sendable {
    private let end: CInt
    private let thread: AgentThread?

    /// - Parameter apply: Called with the settings: before this returns if the file exists, later on the thread.
    init(
        path: String, logger: Logger, apply: @escaping @Sendable (AgentSettings) -> Void
    ) {
        let end = stall_descriptor_own(eventfd(0, CInt(EFD_CLOEXEC)))
        let changes = stall_descriptor_own(inotify_init1(CInt(IN_CLOEXEC)))
        self.end = end
        let directory = path.directoryPath
        let events = UInt32(IN_CLOSE_WRITE | IN_MOVED_TO | IN_DELETE)
        let isWatched = inotify_add_watch(changes, directory, events) >= 0
        if !isWatched {
            logger.warning("\(path): changes of it are not noticed: errno \(errno)")
        }
        var reader = Reader(path: path, logger: logger)
        let first = reader.read() ?? AgentSettings()
        apply(first)
        let later = reader
        thread =
            !isWatched
            ? nil
            : AgentThread(name: "stall-settings") {
                let name = path.fileName
                var (last, reader) = (first, later)
                while Self.waitForChange(of: name, changes, end) {
                    guard let settings = reader.read(), settings != last else { continue }
                    last = settings
                    apply(settings)
                }
                stall_descriptor_close(changes)
            }
        if thread == nil { stall_descriptor_close(changes) }
    }

    deinit { stall_descriptor_close(end) }

    /// Ends the thread.
    func stop() {
        var one: UInt64 = 1
        // The number may belong to a file of the app by now, which must not be written.
        let isWoken = stall_descriptor_is_own(end) && write(end, &one, 8) == 8
        guard let thread, !isWoken || !thread.join(within: .seconds(1)) else { return }
        // A thread that is stuck on the file's disk is detached, with the descriptor that it waits for.
        thread.detach()
        _ = Unmanaged.passRetained(self)
    }

    /// Reads the file, and logs each fault once: one change of a file can be several events.
    private struct Reader {
        let path: String
        let logger: Logger
        private var fault: String?

        init(path: String, logger: Logger) {
            self.path = path
            self.logger = logger
        }

        /// Nil if the file is invalid; empty settings if it does not exist.
        mutating func read() -> AgentSettings? {
            guard access(path, F_OK) == 0 else { return AgentSettings() }
            do {
                guard let bytes = fileContent(path, below: 1 << 20) else {
                    throw SettingsError(description: "it cannot be read")
                }
                let settings = try AgentSettings(json: bytes)
                fault = nil
                return settings
            } catch {
                if "\(error)" != fault {
                    logger.warning("\(path): \(error); the settings stay as they were")
                }
                fault = "\(error)"
                return nil
            }
        }
    }

    /// Returns false when the end is requested, or `changes` is not inotify's any more.
    private static func waitForChange(of name: String, _ changes: CInt, _ end: CInt) -> Bool {
        while true {
            var waits = [
                pollfd(fd: changes, events: Int16(POLLIN), revents: 0),
                pollfd(fd: end, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&waits, 2, -1) > 0 else { continue }
            if waits[1].revents != 0 { return false }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = Glibc.read(changes, &buffer, buffer.count)
            guard (1...buffer.count).contains(count),
                let found = DirectoryChanges(buffer[..<count])
            else { return false }
            if found.mayConcern(name) { return true }
        }
    }
}
