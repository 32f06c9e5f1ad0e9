// Where data goes. A reader that has seen enough closes the pipe; that is no error, and nothing is said about it.

internal import Glibc

/// Buffered standard output.
struct StandardOutput: ~Copyable {
    private var buffer: [UInt8] = []

    /// Takes text; writes when enough has gathered.
    mutating func write(_ text: String) throws(OutputError) {
        buffer.append(contentsOf: text.utf8)
        if buffer.count >= 1 << 16 { try flush() }
    }

    /// Writes what is left. Call it last: `deinit` could not report a failure.
    mutating func flush() throws(OutputError) {
        var written = 0
        while written < buffer.count {
            let count = buffer.withUnsafeBytes { bytes in
                Glibc.write(STDOUT_FILENO, bytes.baseAddress! + written, bytes.count - written)
            }
            if count >= 0 {
                written += count
            } else if errno == EPIPE {
                throw .closedByReader
            } else if errno != EINTR {
                throw .failed(errno: errno)
            }
        }
        buffer.removeAll(keepingCapacity: true)
    }
}

extension StandardOutput {
    /// Writes lines of text.
    static func write(lines: some Sequence<String>) throws {
        var output = StandardOutput()
        for line in lines { try output.write(line + "\n") }
        try output.flush()
    }

    /// Writes a header and rows of CSV; straight to a terminal, control characters are made visible.
    static func write(
        csv header: [String], _ rows: some Sequence<[CSVWriter.Field]>, isRaw: Bool = false
    ) throws {
        let writer = CSVWriter(isRaw: isRaw, showsControls: isatty(STDOUT_FILENO) == 1)
        var output = StandardOutput()
        try output.write(writer.row(header.map { .plain($0) }))
        for row in rows { try output.write(writer.row(row)) }
        try output.flush()
    }

    /// Writes one line of JSON for each object.
    static func write(json objects: some Sequence<some Encodable>) throws {
        var output = StandardOutput()
        for object in objects { try output.write(JSONLines.line(object)) }
        try output.flush()
    }
}

/// Why output could not be written.
enum OutputError: Error, Equatable, CustomStringConvertible {
    /// The reader closed the pipe: it has what it wanted.
    case closedByReader
    /// `write` failed, for example because the disk is full.
    case failed(errno: CInt)

    var description: String {
        switch self {
        case .closedByReader: "standard output was closed"
        case .failed(let errno): "standard output: \(String(cString: strerror(errno)))"
        }
    }
}

/// Says something to the person at the terminal, outside the data.
func say(_ line: String) {
    var bytes = Array((line + "\n").utf8)[...]
    while !bytes.isEmpty {
        let count = bytes.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
        guard count > 0 else { return }  // nobody listens; there is no other place to say so
        bytes = bytes.dropFirst(count)
    }
}
