// Files and rights that the agent uses and this machine, container or user lacks.

internal import Glibc

/// Something that is missing here.
package struct Lack: Equatable, Sendable {
    /// The missing thing and the error.
    package var what: String
    /// The loss without it.
    package var effect: String
    /// A repair; nil if the user has none.
    package var remedy: String?
    /// The guarantees whose failure it explains.
    package var guarantees: [Guarantee]
}

/// Where the agent's needs are looked up; a test has its own.
package struct Surroundings {
    /// The error of opening a file for reading and reading a byte; 0 without one.
    var readError: (String) -> CInt
    /// The error of creating a file in a directory; 0 without one.
    var createError: (String) -> CInt
    /// The first line of a small file.
    var line: (String) -> String?
    var environment: [String: String]

    package static func current(_ environment: [String: String]) -> Surroundings {
        Surroundings(
            readError: readErrorOfFile, createError: createErrorInDirectory, line: lineOfFile,
            environment: environment)
    }

    /// - Parameter storeFolder: Where the agent's store would be.
    package func lacks(storeFolder: String) -> [Lack] {
        [
            file(
                "/proc/thread-self/syscall",
                "stacks of blocked threads and their causes are missing",
                "Run under a kernel that has it: gVisor does not.", [.blocked, .causes, .holders]),
            file(
                "/proc/thread-self/schedstat",
                "a thread that waits for a CPU is taken for one that computes", nil, [.stops]),
            file(
                "/proc/thread-self/cgroup", "time in which a CPU quota was used up is not known",
                nil,
                []),
            folder(
                storeFolder, "the agent's reports cannot be stored there",
                "Name a file that this user can write: STALLWATCH_STORE=/path/stalls.sqlite."),
            folder(
                "/dev/shm",
                "the duration of a stall during which a process was killed is less exact", nil),
            tracing, disabled,
        ].compactMap(\.self)
    }

    private func file(
        _ path: String, _ effect: String, _ remedy: String?, _ guarantees: [Guarantee]
    ) -> Lack? {
        let error = readError(path)
        guard error != 0 else { return nil }
        return Lack(
            what: "\(path): \(text(error))", effect: effect, remedy: remedy, guarantees: guarantees)
    }

    private func folder(_ path: String, _ effect: String, _ remedy: String?) -> Lack? {
        let error = createError(path)
        guard error != 0 else { return nil }
        return Lack(what: "\(path): \(text(error))", effect: effect, remedy: remedy, guarantees: [])
    }

    private func text(_ error: CInt) -> String { String(cString: strerror(error)) }

    /// **Source:** Documentation/admin-guide/LSM/Yama.rst: 0 and 1 let a process read its descendants.
    private var tracing: Lack? {
        let path = "/proc/sys/kernel/yama/ptrace_scope"
        guard let scope = line(path).flatMap({ Int($0) }), scope >= 2 else { return nil }
        return Lack(
            what: "\(path) is \(scope)", effect: "other processes cannot be read",
            remedy: scope == 2
                ? "Run as root, or set it to 1: sysctl kernel.yama.ptrace_scope=1" : nil,
            guarantees: [.tests])
    }

    private var disabled: Lack? {
        guard let value = environment["STALLWATCH_DISABLED"], !["", "0"].contains(value) else {
            return nil
        }
        return Lack(
            what: "STALLWATCH_DISABLED is \(value)",
            effect: "the agent does nothing in programs that have it in their environment",
            remedy: "unset STALLWATCH_DISABLED", guarantees: [])
    }
}

private func readErrorOfFile(_ path: String) -> CInt {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return errno }
    defer { close(file) }
    var byte: UInt8 = 0
    return read(file, &byte, 1) < 0 ? errno : 0
}

private func createErrorInDirectory(_ path: String) -> CInt {
    var template = Array((path + "/.stallctl-doctor-XXXXXX").utf8CString)
    let file = mkstemp(&template)
    guard file >= 0 else { return errno }
    close(file)
    return unlink(template) == 0 ? 0 : errno
}

/// The first line of a small file.
func lineOfFile(_ path: String) -> String? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var buffer = [UInt8](repeating: 0, count: 128)
    let length = read(file, &buffer, buffer.count)
    guard length > 0 else { return nil }
    let text = String(decoding: buffer.prefix(length), as: UTF8.self)
    return text.split(separator: "\n").first.map(String.init)
}
