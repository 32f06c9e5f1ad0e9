// Output to standard output or a file. A reader that closes the pipe early is not an error.

internal import Glibc
internal import StallFormats
internal import StallGzip

/// Buffered output to standard output, or to a file that appears complete or not at all.
struct Output: ~Copyable {
    private var buffer: [UInt8] = []
    private let descriptor: CInt
    private let replaced: (path: String, temporary: String)?
    /// The target is not a regular file: it is written to directly instead of being replaced.
    private let ownedPath: String?
    /// Between this and the file, if compressed.
    private var compressor: GzipFile?
    private var isFinished = false

    /// Writes to standard output.
    init(isCompressed: Bool = false) throws(OutputError) {
        descriptor = STDOUT_FILENO
        compressor = isCompressed ? try Output.gzip(to: descriptor) : nil
        replaced = nil
        ownedPath = nil
    }

    /// Writes to a device, a pipe, or a link's target, which cannot be replaced by renaming.
    private init(through path: String, isCompressed: Bool) throws(OutputError) {
        let file = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0o666)
        guard file >= 0 else { throw .failed(path, errno: errno) }
        var compressor: GzipFile?
        if isCompressed || path.hasSuffix(".gz") {
            do { compressor = try Output.gzip(to: file) } catch {
                close(file)
                throw error
            }
        }
        descriptor = file
        self.compressor = compressor
        replaced = nil
        ownedPath = path
    }

    /// Writes to a temporary file beside the target; ``finish()`` renames it. A name that ends in `.gz` is compressed.
    init(replacing path: String, isCompressed: Bool = false) throws(OutputError) {
        let folder = path.lastIndex(of: "/").map { path[...$0] } ?? ""
        var template = Array("\(folder).stallctl-XXXXXX".utf8CString)
        let file = mkstemp(&template)
        guard file >= 0 else { throw .failed(path, errno: errno) }
        let temporary = String(
            decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
        // mkstemp uses mode 0600; give the file the mode of the one it replaces, or the default mode.
        var status = stat()
        let mask = umask(0)
        umask(mask)
        fchmod(file, lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0o666 & ~mask)
        var compressor: GzipFile?
        if isCompressed || path.hasSuffix(".gz") {
            do { compressor = try Output.gzip(to: file) } catch {
                close(file)
                unlink(temporary)
                throw error
            }
        }
        descriptor = file
        self.compressor = compressor
        replaced = (path, temporary)
        ownedPath = nil
    }

    deinit {
        guard let replaced else {
            if ownedPath != nil { close(descriptor) }
            return
        }
        close(descriptor)
        if !isFinished { unlink(replaced.temporary) }
    }

    /// Whether control characters would be acted on.
    var isTerminal: Bool { compressor == nil && isatty(descriptor) == 1 }

    /// Buffers text.
    mutating func write(_ text: String) throws(OutputError) {
        buffer.append(contentsOf: text.utf8)
        if buffer.count >= 1 << 16 { try flush() }
    }

    /// Buffers bytes.
    mutating func write(bytes: [UInt8]) throws(OutputError) {
        buffer.append(contentsOf: bytes)
        if buffer.count >= 1 << 16 { try flush() }
    }

    /// Buffers the bytes that `body` appends, or none of them if it throws.
    mutating func write(_ body: (inout [UInt8]) throws -> Void) throws {
        let count = buffer.count
        do { try body(&buffer) } catch {
            buffer.removeSubrange(count...)
            throw error
        }
        if buffer.count >= 1 << 16 { try flush() }
    }

    /// Flushes, and renames the temporary file.
    mutating func finish() throws(OutputError) {
        try flush()
        if let compressor { try finish(compressor) }
        if let replaced {
            guard fsync(descriptor) == 0, rename(replaced.temporary, replaced.path) == 0 else {
                throw .failed(replaced.path, errno: errno)
            }
        }
        isFinished = true
    }

    private static func gzip(to file: CInt) throws(OutputError) -> GzipFile {
        guard let compressor = GzipFile(to: file) else {
            throw .notCompressed(String(cString: strerror(errno)))
        }
        return compressor
    }

    private func finish(_ compressor: GzipFile) throws(OutputError) {
        guard compressor.finish() else { throw writeFailed(errno) }
    }

    private mutating func flush() throws(OutputError) {
        var written = 0
        while written < buffer.count {
            let count = buffer.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
                return compressor?.write(rest)
                    ?? Glibc.write(descriptor, rest.baseAddress, rest.count)
            }
            if count >= 0 {
                written += count
            } else if errno != EINTR {
                throw writeFailed(errno)
            }
        }
        buffer.removeAll(keepingCapacity: true)
    }

    private func writeFailed(_ errno: CInt) -> OutputError {
        if errno == EPIPE { return .closedByReader }
        return .failed(replaced?.path ?? ownedPath ?? "standard output", errno: errno)
    }
}

extension Output {
    /// Opens the file, or standard output if there is no path or it is `-`.
    ///
    /// Only a regular file is replaced; anything else is written to directly.
    ///
    /// - Parameter isCompressed: Compress with gzip, whatever the name.
    static func open(
        _ path: String?, isCompressed: Bool = false
    ) throws(OutputError) -> Output {
        guard let path, path != "-" else { return try Output(isCompressed: isCompressed) }
        var status = stat()
        let exists = lstat(path, &status) == 0
        if exists, status.st_mode & S_IFMT != S_IFREG {
            return try Output(through: path, isCompressed: isCompressed)
        }
        return try Output(replacing: path, isCompressed: isCompressed)
    }

    /// Writes lines of text.
    static func write(lines: some Sequence<String>, to path: String? = nil) throws {
        var output = try open(path)
        for line in lines { try output.write(line + "\n") }
        try output.finish()
    }

    /// Writes sentences, wrapped between words on a terminal.
    static func write(sentences: [String]) throws {
        let columns = Terminal.standardOutput(color: .never).columns
        try write(lines: sentences.flatMap { $0.wrapped(to: columns) })
    }

    /// Writes one line of JSON per object.
    static func write(json objects: some Sequence<some Encodable>, to path: String? = nil) throws {
        var output = try open(path)
        for object in objects {
            try output.write(PartialAnswer.labelled(JSONLines.line(object)))
        }
        try output.finish()
    }

    /// Writes lines of JSON.
    static func write(jsonLines lines: [String], to path: String? = nil) throws {
        var output = try open(path)
        for line in lines { try output.write(PartialAnswer.labelled(line)) }
        try output.finish()
    }

    /// Writes a header and rows of CSV; on a terminal, with control characters escaped.
    static func write(
        csv header: [String], _ rows: some Sequence<[CSVWriter.Field]>, isRaw: Bool = false,
        to path: String? = nil
    ) throws {
        var output = try open(path)
        let writer = CSVWriter(isRaw: isRaw, visible: output.isTerminal ? { $0.printable } : nil)
        try output.write(writer.row(header.map { .plain($0) }))
        for row in rows { try output.write(writer.row(row)) }
        try output.finish()
    }
}

/// Why output could not be written.
enum OutputError: Error, Equatable, CustomStringConvertible {
    /// The reader closed the pipe, for example `head`.
    case closedByReader
    /// A system call failed, for example because the disk is full.
    case failed(String, errno: CInt)
    /// gzip failed.
    case notCompressed(String)

    var description: String {
        switch self {
        case .closedByReader: "standard output was closed"
        case .notCompressed(let reason): "cannot be compressed: \(reason)"
        case .failed(let place, let errno): "\(place): \(String(cString: strerror(errno)))"
        }
    }
}

/// Prints a message to stderr.
func say(_ line: String) {
    var bytes = Array((line + "\n").utf8)[...]
    while !bytes.isEmpty {
        let count = bytes.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
        guard count > 0 else { return }  // stderr is closed: nowhere to report it
        bytes = bytes.dropFirst(count)
    }
}
