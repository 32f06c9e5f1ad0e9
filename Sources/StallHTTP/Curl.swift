// HTTP by the program `curl`, run once for each request, or for several that are sent at once. Linked into stallctl, an HTTP client costs every command of it,
// and FoundationNetworking's cannot be given a certificate authority (docs/decisions/0015-http-by-curl.md).
//
// Requests and answers are in memory: nothing is written to a disk, and no secret is in an argument.

internal import Glibc

/// A sender of requests: `curl`, or a test that plays a server.
package protocol HTTPSender {
    /// Sends a request and waits for its answer.
    ///
    /// - Parameter isCancelled: Polled while it waits.
    func send(_ request: HTTPRequest, isCancelled: () -> Bool) -> HTTPReply

    /// Sends requests that do not wait for each other, and waits for all of their answers.
    func send(together requests: [HTTPRequest], isCancelled: () -> Bool) -> [HTTPReply]
}

extension HTTPSender {
    package func send(together requests: [HTTPRequest], isCancelled: () -> Bool) -> [HTTPReply] {
        requests.map { send($0, isCancelled: isCancelled) }
    }
}

/// Sends requests.
package struct Curl: HTTPSender, Sendable {
    private let program: String

    package init(program: String = "curl") { self.program = program }

    package func send(_ request: HTTPRequest, isCancelled: () -> Bool = { false }) -> HTTPReply {
        send(together: [request], isCancelled: isCancelled)[0]
    }

    /// Sends requests at once, by one process: to start one takes longer than many an answer.
    ///
    /// - Parameter requests: A dozen at most: each has three files.
    /// - Returns: A reply for each. When one fails, all of them do.
    package func send(
        together requests: [HTTPRequest], isCancelled: () -> Bool = { false }
    ) -> [HTTPReply] {
        do throws(SystemFailure) {
            return try answers(to: requests, isCancelled)
        } catch {
            let reply: HTTPReply =
                error.errno == ENOENT
                ? .refused(reason: "curl is not installed: stallctl speaks HTTP through it")
                : .failed(reason: "\(error.call): \(String(cString: strerror(error.errno)))")
            return requests.map { _ in reply }
        }
    }

    private func answers(
        to requests: [HTTPRequest], _ isCancelled: () -> Bool
    ) throws(SystemFailure) -> [HTTPReply] {
        var transfers: [Transfer] = []
        for request in requests {
            transfers.append(try Transfer(request, firstFile: 4 + 3 * CInt(transfers.count)))
        }
        let config = try MemoryFile.holding(Array(Transfer.options(transfers).utf8))
        let errorOutput = try MemoryFile.holding([])
        var files: [(file: CInt, number: CInt)] = [
            (errorOutput.descriptor, 2), (config.descriptor, 3),
        ]
        for transfer in transfers { files += transfer.files }
        let began = Self.seconds
        let process = try spawn(files)
        for transfer in transfers { transfer.output.closeEnd() }
        let result = Transfer.read(&transfers, isCancelled)
        if result != .whole { kill(process, SIGKILL) }
        var status: CInt = 0
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        var failure: HTTPReply?
        let isExit = status & 0x7f == 0
        if isCancelled() {
            failure = .failed(reason: "stopped by a signal")
        } else if case .tooLong(let limit) = result {
            // And would be the next time.
            failure = Self.tooLong(limit)
        } else if !isExit || status >> 8 != 0 {
            let limits = requests.map(\.limits)
            let silence = limits.compactMap(\.silence_s).max()
            failure = Self.failure(
                isExit ? status >> 8 : -1, errorOutput.bytes(limit: 1000),
                tookAll: Self.seconds - began >= limits.map(\.answer_s).max() ?? 0,
                silence: silence.flatMap { Self.seconds - began >= $0 ? $0 : nil },
                limits.map(\.answerBytes).max() ?? 0)
        }
        return transfers.map { failure ?? $0.reply }
    }

    /// Starts curl with these files open, each under the number beside it.
    private func spawn(_ files: [(file: CInt, number: CInt)]) throws(SystemFailure) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        // First moves the files off the numbers that they are to get.
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
        guard code == 0 else { throw SystemFailure("posix_spawn", code) }
        return process
    }

    private static func tooLong(_ limit: Int) -> HTTPReply {
        .refused(reason: "the answer is longer than \(limit) bytes")
    }

    /// Of the monotonic clock.
    private static var seconds: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec
    }

    /// The meaning of curl's exit status: most failures pass, some never do.
    ///
    /// - Parameters:
    ///   - tookAll: Whether a request had all of its time: 28 is also that of a connection that is not made.
    ///   - silence: How long nothing may come, if a request took as long.
    ///
    /// **Source:** curl(1), "EXIT CODES".
    static func failure(
        _ code: CInt, _ errorOutput: [UInt8], tookAll: Bool = false, silence: Int? = nil,
        _ byteLimit: Int = 0
    ) -> HTTPReply {
        let lines = String(decoding: errorOutput, as: UTF8.self).split(whereSeparator: \.isNewline)
        let line = lines.first { $0.hasPrefix("curl: ") } ?? lines.first
        let reason = line.map(String.init) ?? "curl ended with status \(code)"
        if code == 63 { return tooLong(byteLimit) }
        let lasting: Set<CInt> = [
            2, 3, 4, 26, 41, 43, 48, 51, 53, 54, 58, 59, 60, 66, 77, 83, 90,
        ]
        if code == 28, tookAll { return .timedOut(reason: reason) }
        if code == 28, let silence { return .failed(reason: "no answer within \(silence) s") }
        return lasting.contains(code) ? .refused(reason: reason) : .failed(reason: reason)
    }
}

/// A failed system call.
struct SystemFailure: Error {
    var call: String
    var errno: CInt

    init(_ call: String, _ errno: CInt = Glibc.errno) { (self.call, self.errno) = (call, errno) }
}
