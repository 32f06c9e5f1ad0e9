// Files and rights that the agent uses and this machine, container or user lacks: for selfTest() and for `stallctl doctor`.

internal import CLinux
internal import Glibc

/// Something that is missing, and which parts of the agent need it.
package struct Shortage: Equatable, Sendable {
    package var loss: SelfTestFinding.Loss
    package var parts: [SelfTestFinding.Part]
    /// Without it the parts do not work at all.
    package var isFatal: Bool

    package init(
        _ what: String, _ effect: String, remedy: String? = nil, of parts: [SelfTestFinding.Part],
        isFatal: Bool = false
    ) {
        loss = SelfTestFinding.Loss(what: what, effect: effect, remedy: remedy)
        self.parts = parts
        self.isFatal = isFatal
    }
}

/// Where the agent's needs are looked up; a test has its own.
package struct Surroundings {
    /// The error of opening a file for reading and reading a byte; 0 without one.
    package var readError: (String) -> CInt
    /// The error of creating a file in a directory; 0 without one.
    package var createError: (String) -> CInt
    /// The first line of a small file.
    package var line: (String) -> String?

    package init(
        readError: @escaping (String) -> CInt, createError: @escaping (String) -> CInt,
        line: @escaping (String) -> String?
    ) {
        self.readError = readError
        self.createError = createError
        self.line = line
    }

    package static var current: Surroundings {
        Surroundings(
            readError: readErrorOfFile, createError: createErrorInDirectory, line: firstLineOfFile)
    }

    /// The files and rights that an agent uses and that are missing.
    ///
    /// - Parameter storeFolder: Where the agent's store is, or would be.
    package func shortages(storeFolder: String) -> [Shortage] {
        var found: [Shortage] = []
        func file(
            _ path: String, _ effect: String, ifMissing remedy: String? = nil,
            of parts: [SelfTestFinding.Part], isFatal: Bool = false
        ) {
            let error = readError(path)
            guard error != 0 else { return }
            found.append(
                Shortage(
                    "\(path): \(text(error))", effect, remedy: error == ENOENT ? remedy : nil,
                    of: parts, isFatal: isFatal))
        }
        func folder(
            _ path: String, _ effect: String, _ remedy: String? = nil,
            of part: SelfTestFinding.Part,
            isFatal: Bool = false
        ) {
            let error = createError(path)
            guard error != 0 else { return }
            found.append(
                Shortage(
                    "\(path): \(text(error))", effect, remedy: remedy, of: [part], isFatal: isFatal)
            )
        }
        file(
            "/proc/thread-self/syscall", "stacks of blocked threads and their causes are missing",
            ifMissing: "Run under a kernel that has it: gVisor does not.",
            of: [.blockedStacks, .causes, .lockHolders], isFatal: true)
        file(
            "/proc/thread-self/schedstat",
            "a thread that waits for a CPU is taken for one that computes", of: [.causes])
        file(
            "/proc/thread-self/cgroup", "time in which a CPU quota was used up is not known",
            of: [.causes])
        folder(
            storeFolder, "the agent's reports cannot be stored there",
            "Name a file that this user can write: STALLWATCH_STORE=/path/stalls.sqlite.",
            of: .store, isFatal: true)
        folder(
            "/dev/shm",
            "the duration of a stall during which a process was killed is less exact", of: .endings)
        return found
    }

    private func text(_ error: CInt) -> String { String(cString: strerror(error)) }
}

private func readErrorOfFile(_ path: String) -> CInt {
    let file = stall_above_standard(open(path, O_RDONLY | O_CLOEXEC))
    guard file >= 0 else { return errno }
    defer { close(file) }
    var byte: UInt8 = 0
    return read(file, &byte, 1) < 0 ? errno : 0
}

private func createErrorInDirectory(_ path: String) -> CInt {
    var template = Array((path + "/.stallwatch-XXXXXX").utf8CString)
    let file = stall_above_standard(mkstemp(&template))
    guard file >= 0 else { return errno }
    close(file)
    return unlink(template) == 0 ? 0 : errno
}

/// The first line of a small file.
package func firstLineOfFile(_ path: String) -> String? {
    let file = stall_above_standard(open(path, O_RDONLY | O_CLOEXEC))
    guard file >= 0 else { return nil }
    defer { close(file) }
    var buffer = [UInt8](repeating: 0, count: 128)
    let length = read(file, &buffer, buffer.count)
    guard length > 0 else { return nil }
    let text = String(decoding: buffer.prefix(length), as: UTF8.self)
    return text.split(separator: "\n").first.map(String.init)
}
