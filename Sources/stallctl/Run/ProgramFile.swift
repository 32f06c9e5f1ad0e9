// The program that `run` is to execute: found as a shell finds it, and examined for what prevents watching it.

internal import Foundation
internal import Glibc

struct ProgramFile {
    /// As `execve` takes it.
    let path: String
    /// The file's name.
    var name: String { path.split(separator: "/").last.map(String.init) ?? path }

    /// Why there is nothing to execute, with a shell's exit codes.
    enum NotFound: Error, Equatable, CustomStringConvertible {
        case notFound(String)
        case notExecutable(String, errno: CInt)

        var exitCode: CInt {
            switch self {
            case .notFound: 127
            case .notExecutable: 126
            }
        }

        var description: String {
            switch self {
            case .notFound(""): "the program's name is empty"
            case .notFound(let name): "\(name): no such program"
            case .notExecutable(let name, EISDIR): "\(name): a directory; expected a program"
            case .notExecutable(let name, let errno):
                "\(name): \(String(cString: strerror(errno)))"
            }
        }
    }

    /// **Source:** execvp(3): a name with a slash is a path; others are looked up in `PATH`, and a file that may not be
    /// executed is passed over.
    static func find(
        _ name: String, searchPath: String? = ProcessInfo.processInfo.environment["PATH"]
    ) throws(NotFound) -> ProgramFile {
        if name.contains("/") {
            let error = refusal(of: name)
            if error == 0 { return ProgramFile(path: name) }
            throw error == ENOENT || error == ENOTDIR
                ? .notFound(name) : .notExecutable(name, errno: error)
        }
        var refused: CInt?
        for folder in (searchPath ?? "/bin:/usr/bin").split(
            separator: ":", omittingEmptySubsequences: false)
        {
            let path = folder.isEmpty ? "./" + name : folder + "/" + name
            let error = refusal(of: String(path))
            if error == 0 { return ProgramFile(path: String(path)) }
            if error == EACCES { refused = error }
        }
        if let refused { throw .notExecutable(name, errno: refused) }
        throw .notFound(name)
    }

    /// 0 for a file that may be executed.
    private static func refusal(of path: String) -> CInt {
        var status = stat()
        guard stat(path, &status) == 0 else { return errno }
        if status.st_mode & S_IFMT == S_IFDIR { return EISDIR }
        guard status.st_mode & S_IFMT == S_IFREG else { return EACCES }
        return access(path, X_OK) == 0 ? 0 : errno
    }

    /// Why a program cannot be watched.
    enum Obstacle: Equatable {
        case isStatic, isPrivileged, isGo, isSanitized, isUnreadable
        case otherMachine
        case otherLibrary(String)

        var sentence: String {
            switch self {
            case .isStatic: "it is linked statically, so nothing can be loaded into it"
            case .isPrivileged: "it runs with more rights than its caller has"
            case .isGo: "it is written in Go, which waits without the C library"
            case .isSanitized: "it is linked with a sanitizer, which accepts no agent"
            case .isUnreadable: "its file cannot be read, or is of an unknown kind"
            case .otherMachine: "it is built for another machine than stallctl"
            case .otherLibrary(let loader): "its C library is not glibc (\(loader))"
            }
        }

        /// Its children may be watched, and the variables for that do it no harm.
        var isOnlyItsOwn: Bool { self == .isStatic || self == .isGo }
    }

    struct Examination: Equatable {
        var obstacle: Obstacle?
        /// How many programs only execute the next one in the same process: `env` in a script's first line.
        var launches = 0
        /// A shell, or env: the program to watch is the one that it executes in its own process.
        var isShell = false
        /// The binary that is executed.
        var binary: String?

        /// Whether the dynamic linker loads a library for it at its start.
        func loads(_ library: String) -> Bool {
            guard let binary else { return false }
            let linker = Process()
            let output = Pipe()
            linker.executableURL = URL(fileURLWithPath: binary)
            // It then prints what it would load, and runs nothing.
            linker.environment = ProcessInfo.processInfo.environment.merging(
                ["LD_TRACE_LOADED_OBJECTS": "1"]) { $1 }
            linker.standardOutput = output
            linker.standardError = FileHandle.nullDevice
            linker.standardInput = FileHandle.nullDevice
            guard (try? linker.run()) != nil else { return false }
            let said = String(
                decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            linker.waitUntilExit()
            return said.split(whereSeparator: \.isWhitespace).contains { $0 == library }
        }
    }

    private static let shells: Set = [
        "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "busybox", "fish", "env",
    ]

    private static func isShell(_ path: String) -> Bool {
        guard let real = realpath(path, nil) else { return false }
        defer { free(real) }
        return shells.contains(
            String(cString: real).split(separator: "/").last.map(String.init) ?? "")
    }

    /// Follows scripts to their interpreters.
    func examine() -> Examination {
        var (path, launches) = (path, 0)
        for _ in 0..<5 {
            if Self.isPrivileged(path) { return Examination(obstacle: .isPrivileged) }
            guard let head = FileHead(path: path) else {
                return Examination(obstacle: .isUnreadable)
            }
            switch head.kind {
            case .binary(let obstacle):
                return Examination(
                    obstacle: obstacle, launches: launches, isShell: Self.isShell(path),
                    binary: path)
            case .script(let interpreter, let argument):
                path = interpreter
                guard interpreter.hasSuffix("/env"), let argument,
                    let name = Self.programOfEnv(argument), let found = try? Self.find(name)
                else { continue }
                path = found.path
                launches += 1
            case .text:
                path = "/bin/sh"
            case .unknown:
                return Examination(obstacle: .isUnreadable)
            }
        }
        return Examination(obstacle: .isUnreadable)
    }

    /// The program in `env`'s argument: after options and assignments.
    static func programOfEnv(_ argument: String) -> String? {
        argument.split(whereSeparator: { $0 == " " || $0 == "\t" })
            .first { !$0.hasPrefix("-") && !$0.contains("=") }.map(String.init)
    }

    /// The dynamic linker then loads nothing (AT_SECURE). Root has what file capabilities give.
    private static func isPrivileged(_ path: String) -> Bool {
        var status = stat()
        guard stat(path, &status) == 0 else { return false }
        if status.st_mode & S_ISUID != 0, status.st_uid != getuid() { return true }
        let setsGroup = S_ISGID | S_IXGRP
        if status.st_mode & setsGroup == setsGroup, status.st_gid != getgid() { return true }
        return getuid() != 0 && hasCapabilities(path)
    }

    /// getxattr(2) is not in Swift's Glibc module.
    private static func hasCapabilities(_ path: String) -> Bool {
        typealias Get =
            @convention(c) (
                UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int
            ) -> Int
        guard let symbol = dlsym(nil, "getxattr") else { return false }
        return unsafeBitCast(symbol, to: Get.self)(path, "security.capability", nil, 0) > 0
    }

    /// Replaces this process by the program. Returns the error of a failure.
    func execute(_ command: [String], _ environment: RunEnvironment) -> CInt {
        withWords(command, environment) { arguments, variables in
            execve(path, arguments, variables)
            guard errno == ENOEXEC else { return errno }
            // As a shell does, and execvp(3).
            return withWords(["/bin/sh", path] + command.dropFirst(), environment) {
                execve("/bin/sh", $0, $1)
                return errno
            }
        }
    }

    /// Calls `body` with the command and the environment as `execve` takes them.
    func withWords<Result>(
        _ command: [String], _ environment: RunEnvironment,
        _ body: (
            UnsafePointer<UnsafeMutablePointer<CChar>?>, UnsafePointer<UnsafeMutablePointer<CChar>?>
        ) -> Result
    ) -> Result {
        let arguments = command.map { strdup($0) } + [nil]
        let variables = environment.words.map { strdup($0) } + [nil]
        defer { for word in arguments + variables { free(word) } }
        return arguments.withUnsafeBufferPointer { arguments in
            variables.withUnsafeBufferPointer { body(arguments.baseAddress!, $0.baseAddress!) }
        }
    }
}
