// Shows long text on a terminal with a pager, as git does. Never in a pipe or a file. Whatever happens to the pager,
// stallctl continues: plain output replaces one that cannot be started, and one that was quit ends the output.

internal import Foundation
internal import Glibc

/// A pager as the user named it: a shell command that reads standard input.
struct Pager: Equatable {
    var command: String

    /// The first of `STALLWATCH_PAGER` and `PAGER` that is set, else `less` where it is installed. Nil if that is empty
    /// or `cat`, or if the terminal cannot move its cursor.
    static func chosen(
        _ environment: [String: String] = ProcessInfo.processInfo.environment,
        isInstalled: (String) -> Bool = Self.isInstalled
    ) -> Pager? {
        guard (environment["TERM"] ?? "dumb") != "dumb" else { return nil }
        if let named = environment["STALLWATCH_PAGER"] ?? environment["PAGER"] {
            let command = named.trimmingCharacters(in: .whitespaces)
            return command.isEmpty || command == "cat" ? nil : Pager(command: command)
        }
        return isInstalled("less") ? Pager(command: "less") : nil
    }

    /// Whether it passes links on to the terminal: `less` from version 566 on, run with the option to keep control
    /// sequences.
    var showsLinks: Bool {
        let program = command.split(separator: " ").first { !$0.contains("=") } ?? ""
        return program.split(separator: "/").last == "less"
    }

    /// Whether the lines take more rows than the window has.
    static func isLong(_ lines: [String], columns: Int, rows: Int) -> Bool {
        var used = 0
        for line in lines {
            used += max(1, (line.shownWidth + columns - 1) / max(columns, 1))
            if used >= rows { return true }
        }
        return false
    }

    /// The pager's environment besides ours, unless the user has set it: `less` quits if the text fits the window,
    /// keeps colors, and leaves the text on the screen; `lv` keeps colors.
    static let defaults = ["LESS": "FRX", "LV": "-c"]

    /// Shows the lines until the user quits.
    ///
    /// - Returns: Whether the pager ran.
    func show(_ lines: [String]) -> Bool {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { return false }
        let (reading, writing) = (ends[0], ends[1])
        // The pager would wait for the end of its input for as long as it held the other end itself.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // ^C is for the pager.
        let signals = [SIGINT, SIGQUIT]
        let handlers = signals.map { signal($0, SIG_IGN) }
        defer { for (number, handler) in zip(signals, handlers) { signal(number, handler) } }
        guard let child = start(reading: reading) else {
            close(reading)
            close(writing)
            return false
        }
        close(reading)
        Self.write(lines, to: writing)
        close(writing)
        var status: CInt = 0
        while waitpid(child, &status, 0) < 0 { guard errno == EINTR else { return true } }
        // The shell exits with 126 or 127 for a command that it could not run.
        let code = status & 0x7f == 0 ? status >> 8 & 0xff : 0
        return code != 126 && code != 127
    }

    private func start(reading: CInt) -> pid_t? {
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        guard posix_spawn_file_actions_init(&actions) == 0 else { return nil }
        defer { posix_spawn_file_actions_destroy(&actions) }
        guard posix_spawnattr_init(&attributes) == 0 else { return nil }
        defer { posix_spawnattr_destroy(&attributes) }
        // stallctl ignores these; the pager must not.
        var ownSignals = sigset_t()
        sigemptyset(&ownSignals)
        for number in [SIGINT, SIGQUIT, SIGPIPE, SIGXFSZ] { sigaddset(&ownSignals, number) }
        guard posix_spawn_file_actions_adddup2(&actions, reading, STDIN_FILENO) == 0,
            posix_spawnattr_setsigdefault(&attributes, &ownSignals) == 0,
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF)) == 0
        else { return nil }
        let variables = Self.defaults.merging(ProcessInfo.processInfo.environment) { $1 }
        var child: pid_t = 0
        let words = ["sh", "-c", command]
        let status = Self.withPointers(words) { words in
            Self.withPointers(variables.map { "\($0)=\($1)" }) {
                posix_spawn(&child, "/bin/sh", &actions, &attributes, words, $0)
            }
        }
        return status == 0 ? child : nil
    }

    /// Stops at the first error: the user has quit the pager.
    private static func write(_ lines: [String], to descriptor: CInt) {
        var bytes = Array(lines.map { $0 + "\n" }.joined().utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress, $0.count)
            }
            if count < 0 {
                guard errno == EINTR else { return }
            } else {
                bytes = bytes.dropFirst(count)
            }
        }
    }

    private static func withPointers<Result>(
        _ texts: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        let pointers = texts.map { strdup($0) }
        defer { for pointer in pointers { free(pointer) } }
        return body(pointers + [nil])
    }

    /// Whether a program of this name is in the `PATH`.
    static func isInstalled(_ name: String) -> Bool {
        let folders = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return folders.split(separator: ":").contains { access("\($0)/\(name)", X_OK) == 0 }
    }
}
