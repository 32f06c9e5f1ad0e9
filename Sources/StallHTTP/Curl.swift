// HTTP by the program `curl`, run once for each request. Linked into stallctl, an HTTP client costs every command of it,
// and FoundationNetworking's cannot be given a certificate authority (docs/decisions/0015-http-by-curl.md).
//
// Requests and answers are in memory: nothing is written to a disk, and no secret is in an argument.

internal import CMemoryFile
internal import Glibc

/// What sends requests: `curl`, or a test that plays a server.
package protocol HTTPSender {
    /// Sends a request and waits for its answer.
    ///
    /// - Parameter isCancelled: Polled while it waits.
    func send(_ request: HTTPRequest, isCancelled: () -> Bool) -> HTTPReply
}

/// Sends requests.
package struct Curl: HTTPSender, Sendable {
    /// The heads of an answer that are read.
    private static let headLimit = 1 << 20
    private let program: String

    package init(program: String = "curl") { self.program = program }

    package func send(_ request: HTTPRequest, isCancelled: () -> Bool = { false }) -> HTTPReply {
        do throws(SystemFailure) {
            return try answer(to: request, isCancelled)
        } catch {
            return error.errno == ENOENT
                ? .refused(reason: "curl is not installed: stallctl speaks HTTP through it")
                : .failed(reason: "\(error.call): \(String(cString: strerror(error.errno)))")
        }
    }

    private func answer(
        to request: HTTPRequest, _ isCancelled: () -> Bool
    ) throws(SystemFailure) -> HTTPReply {
        let options = request.options(bodyPath: "/dev/fd/4", headPath: "/dev/fd/5")
        let config = try memoryFile(Array(options.utf8))
        let body = try memoryFile(request.body ?? [])
        let (heads, complaint) = (try memoryFile([]), try memoryFile([]))
        var output: [CInt] = [-1, -1]
        guard stall_closed_pipe(&output) == 0 else { throw SystemFailure("pipe2") }
        defer { close(output[0]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        // First away from the numbers that they are to have.
        let files =
            [
                (output[1], 1), (complaint.descriptor, 2), (config.descriptor, 3),
                (body.descriptor, 4), (heads.descriptor, 5),
            ] as [(CInt, CInt)]
        for (file, number) in files {
            posix_spawn_file_actions_adddup2(&actions, file, number + 900)
        }
        for (_, number) in files {
            posix_spawn_file_actions_adddup2(&actions, number + 900, number)
            posix_spawn_file_actions_addclose(&actions, number + 900)
        }
        // The command may have blocked the signals that end it.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        var process: pid_t = 0
        let words = [program, "--disable", "--config", "/dev/fd/3"]
        var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        let code = posix_spawnp(&process, program, &actions, &attributes, &arguments, environ)
        close(output[1])
        guard code == 0 else { throw SystemFailure("posix_spawn", code) }
        let (answer, isWhole) = Self.read(output[0], limit: request.limits.answerBytes, isCancelled)
        if !isWhole { kill(process, SIGKILL) }
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        if isCancelled() { return .failed(reason: "stopped by a signal") }
        guard isWhole else {
            return .failed(reason: "the answer is longer than \(request.limits.answerBytes) bytes")
        }
        let isExit = status & 0x7f == 0
        guard isExit, status >> 8 == 0 else {
            return Self.failure(isExit ? status >> 8 : -1, complaint.bytes(limit: 1000))
        }
        return HTTPAnswer(heads: heads.bytes(limit: Self.headLimit), body: answer)
            .map(HTTPReply.answer) ?? .failed(reason: "the answer is not HTTP")
    }

    private func memoryFile(_ bytes: [UInt8]) throws(SystemFailure) -> MemoryFile {
        guard let file = MemoryFile() else { throw SystemFailure("memfd_create") }
        guard file.write(bytes) else { throw SystemFailure("pwrite") }
        return file
    }

    private static func read(
        _ descriptor: CInt, limit: Int, _ isCancelled: () -> Bool
    ) -> (bytes: [UInt8], isWhole: Bool) {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count <= limit, !isCancelled() {
            var input = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&input, 1, 100) != 0 else { continue }
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            if count <= 0 { return (bytes, true) }
            bytes += buffer[..<count]
        }
        return (bytes, false)
    }

    /// What curl's exit status means: most failures pass, some never do.
    ///
    /// **Source:** curl(1), "EXIT CODES".
    static func failure(_ code: CInt, _ complaint: [UInt8]) -> HTTPReply {
        let line = String(decoding: complaint, as: UTF8.self).prefix { !$0.isNewline }
        let reason = line.isEmpty ? "curl ended with status \(code)" : String(line)
        let lasting: Set<CInt> = [
            2, 3, 4, 26, 41, 43, 48, 51, 53, 54, 58, 59, 60, 66, 77, 83, 90,
        ]
        return lasting.contains(code) ? .refused(reason: reason) : .failed(reason: reason)
    }
}

/// A failed system call.
struct SystemFailure: Error {
    var call: String
    var errno: CInt

    init(_ call: String, _ errno: CInt = Glibc.errno) { (self.call, self.errno) = (call, errno) }
}
