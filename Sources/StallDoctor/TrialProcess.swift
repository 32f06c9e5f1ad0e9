// A child of stallctl that runs a part of the examination.

internal import CLinux
internal import Glibc

/// A child with pipes for its output.
package final class TrialProcess {
    package let id: Int32
    private let output: CInt
    private let errors: CInt
    private var partial: [CInt: [UInt8]] = [:]
    private var open: Set<CInt>
    /// Its status, if that was read already.
    private var ended: CInt?
    package private(set) var lines: [String] = []
    package private(set) var errorLines: [String] = []

    /// Starts this program again, with other arguments and without an operator's variables.
    ///
    /// - Parameter folder: For its temporary files.
    /// - Throws: The error of `posix_spawn` or `pipe`.
    package init(arguments: [String], folder: String) throws(TrialError) {
        var out: [CInt] = [0, 0]
        var err: [CInt] = [0, 0]
        guard Self.openPipe(&out) else { throw TrialError("pipe", errno) }
        guard Self.openPipe(&err) else { throw TrialError("pipe", errno) }
        defer {
            close(out[1])
            close(err[1])
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO)
        let words = (["stallctl"] + arguments).map { strdup($0) } + [nil]
        let variables = (Self.environment + ["TMPDIR=\(folder)"]).map { strdup($0) } + [nil]
        defer { for word in words + variables { free(word) } }
        var child: pid_t = 0
        let error = posix_spawn(&child, Self.program, &actions, nil, words, variables)
        guard error == 0 else { throw TrialError(Self.program, error) }
        id = child
        output = out[0]
        errors = err[0]
        open = [out[0], err[0]]
    }

    /// This program.
    static let program = "/proc/self/exe"

    private static func openPipe(_ ends: inout [CInt]) -> Bool {
        guard pipe(&ends) == 0 else { return false }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return true
    }

    private static var environment: [String] {
        var result: [String] = []
        var next = environ
        while let entry = next.pointee {
            let text = String(cString: entry)
            if !["STALLWATCH_", "STALLCTL_", "TMPDIR="].contains(where: text.hasPrefix) {
                result.append(text)
            }
            next += 1
        }
        return result
    }

    /// Reads until it has printed `line`. False if it ended before, or did not print it in time.
    package func awaitLine(_ line: String, until deadline: Duration) -> Bool {
        while !lines.contains(line) {
            guard readMore(until: deadline) else { return false }
        }
        return true
    }

    /// Waits until it is stopped. False if it ended before, or was not stopped in time.
    package func awaitStop(until deadline: Duration) -> Bool {
        var status: CInt = 0
        while monotonicTime() < deadline && !EndingSignal.isPending {
            let found = waitpid(id, &status, WNOHANG | WUNTRACED)
            if found == id {
                if status & 0xFF == 0x7F { return true }
                ended = status
                return false
            }
            if found < 0, errno != EINTR { return false }
            usleep(2000)
        }
        return false
    }

    package static let killed = "it was killed"

    /// Ends it, unless it has ended: its number may then be of another process.
    package func kill() {
        if ended == nil { _ = Glibc.kill(id, SIGKILL) }
    }

    /// Reads until it ends; kills it at the deadline. Nil if it ended with 0, else its last message, or how it ended.
    package func end(by deadline: Duration) -> String? {
        while readMore(until: deadline) {}
        var isLate = false
        if !open.isEmpty {
            isLate = true
            kill()
            while readMore(until: deadline + .seconds(1)) {}
        }
        for descriptor in [output, errors] { close(descriptor) }
        var status = ended ?? 0
        if ended == nil { while waitpid(id, &status, 0) < 0, errno == EINTR {} }
        if isLate { return "it did not end in time" }
        if status & 0x7F == SIGKILL { return Self.killed }
        if status & 0x7F != 0 { return "it was ended by signal \(status & 0x7F)" }
        let code = status >> 8 & 0xFF
        guard code != 0 else { return nil }
        return errorLines.last ?? "it ended with status \(code)"
    }

    /// False at the end of all output, at the deadline, and when this process is to end.
    private func readMore(until deadline: Duration) -> Bool {
        guard !open.isEmpty && !EndingSignal.isPending else { return false }
        var sources = open.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        let rest = deadline - monotonicTime()
        guard rest > .zero else { return false }
        let count = poll(
            &sources, nfds_t(sources.count), CInt(min(rest / .milliseconds(1), 60_000)) + 1)
        guard count >= 0 || errno == EINTR else { return false }
        for source in sources where source.revents != 0 {
            var buffer = [UInt8](repeating: 0, count: 4096)
            let length = read(source.fd, &buffer, buffer.count)
            if length > 0 {
                take(buffer.prefix(length), of: source.fd)
            } else if length == 0 || errno != EINTR {
                open.remove(source.fd)
            }
        }
        return true
    }

    private func take(_ bytes: ArraySlice<UInt8>, of descriptor: CInt) {
        var text = partial[descriptor, default: []] + bytes
        while let end = text.firstIndex(of: UInt8(ascii: "\n")) {
            let line = String(decoding: text[..<end], as: UTF8.self)
            if descriptor == output { lines.append(line) } else { errorLines.append(line) }
            text.removeSubrange(...end)
        }
        // A sanitizer's line, for example, may be long.
        partial[descriptor] = Array(text.suffix(64 << 10))
    }
}

package struct TrialError: Error, CustomStringConvertible {
    package let description: String
    init(_ subject: String, _ number: CInt) {
        description = "\(subject): \(String(cString: strerror(number)))"
    }
}
