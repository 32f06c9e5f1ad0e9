// One request among those that a process of curl sends, with the files between the two processes.

internal import CMemoryFile
internal import Glibc

/// A request in transit.
struct Transfer {
    let request: HTTPRequest
    let output: Pipe
    private let body, heads: MemoryFile
    /// The number that curl has the first of the three files under.
    private let firstFile: CInt
    private var answer: [UInt8] = []
    private var isOpen = true

    /// The heads of an answer that are read.
    private static let headLimit = 1 << 20

    init(_ request: HTTPRequest, firstFile: CInt) throws(SystemFailure) {
        (self.request, self.firstFile) = (request, firstFile)
        body = try .holding(request.body ?? [])
        heads = try .holding([])
        output = try Pipe()
    }

    /// The files, and the numbers that curl has them under.
    var files: [(file: CInt, number: CInt)] {
        [
            (body.descriptor, firstFile), (heads.descriptor, firstFile + 1),
            (output.end, firstFile + 2),
        ]
    }

    /// The options of all transfers, as `curl --config` reads them.
    static func options(_ transfers: [Transfer]) -> String {
        let parts = transfers.map {
            $0.request.options(
                bodyPath: "/dev/fd/\($0.firstFile)", headPath: "/dev/fd/\($0.firstFile + 1)",
                outputPath: "/dev/fd/\($0.firstFile + 2)")
        }
        // The exit status shows a failure only if that ends the others.
        let start =
            parts.count > 1 ? "parallel\nparallel-immediate\nfail-early\nno-progress-meter\n" : ""
        return start + parts.joined(separator: "next\n")
    }

    enum Ending: Equatable {
        case whole, cancelled
        case tooLong(limit: Int)
    }

    /// Reads the bodies of the answers as they come.
    static func read(_ transfers: inout [Transfer], _ isCancelled: () -> Bool) -> Ending {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while !isCancelled() {
            let open = transfers.indices.filter { transfers[$0].isOpen }
            guard !open.isEmpty else { return .whole }
            var inputs = open.map {
                pollfd(fd: transfers[$0].output.beginning, events: Int16(POLLIN), revents: 0)
            }
            guard poll(&inputs, nfds_t(inputs.count), 100) > 0 else { continue }
            for (index, input) in zip(open, inputs) where input.revents != 0 {
                let count = Glibc.read(input.fd, &buffer, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    transfers[index].isOpen = false
                    continue
                }
                transfers[index].answer += buffer[..<count]
                let limit = transfers[index].request.limits.answerBytes
                if transfers[index].answer.count > limit { return .tooLong(limit: limit) }
            }
        }
        return .cancelled
    }

    /// The reply that curl received, after it ended well.
    var reply: HTTPReply {
        HTTPAnswer(heads: heads.bytes(limit: Self.headLimit), body: answer)
            .map(HTTPReply.answer) ?? .failed(reason: "the answer is not HTTP")
    }
}

/// A pipe, closed on exec.
final class Pipe {
    let beginning: CInt
    /// Where it is written; -1 once it is closed here.
    private(set) var end: CInt

    init() throws(SystemFailure) {
        var pipe: [CInt] = [-1, -1]
        guard stall_closed_pipe(&pipe) == 0 else { throw SystemFailure("pipe2") }
        (beginning, end) = (pipe[0], pipe[1])
    }

    /// Leaves the end to the other process: its own end is then seen here.
    func closeEnd() {
        if end >= 0 { close(end) }
        end = -1
    }

    deinit {
        closeEnd()
        close(beginning)
    }
}

extension MemoryFile {
    static func holding(_ bytes: [UInt8]) throws(SystemFailure) -> MemoryFile {
        guard let file = MemoryFile() else { throw SystemFailure("memfd_create") }
        guard file.write(bytes) else { throw SystemFailure("pwrite") }
        return file
    }
}
