// Follows the file of an event stream while it is written.

internal import Glibc

/// Cuts bytes into lines. A line longer than the limit is dropped, so that memory is bounded whatever is written.
struct LineCutter {
    static let longestLine = 4 << 20
    private var rest: [UInt8] = []
    private var isTooLong = false

    /// The lines that these bytes complete.
    mutating func lines(in bytes: some Sequence<UInt8>) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        for byte in bytes {
            if byte != 10 {
                if rest.count < Self.longestLine { rest.append(byte) } else { isTooLong = true }
                continue
            }
            if !isTooLong, !rest.isEmpty { lines.append(rest) }
            rest.removeAll(keepingCapacity: rest.capacity < 1 << 16)
            isTooLong = false
        }
        return lines
    }
}

/// The events in a file that grows. Only a regular file is read: reading a pipe would take the events from the user.
struct TestEventStream: ~Copyable {
    private let path: String
    private var file: CInt = -1
    private var offset = 0
    private var cutter = LineCutter()
    /// Lines that are no events.
    private(set) var unknownLines = 0

    init(path: String) { self.path = path }

    deinit { if file >= 0 { close(file) } }

    /// The events since the last call, at most those in 4 MB.
    mutating func read() -> [TestEvent] {
        if file < 0 {
            file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
            guard file >= 0 else { return [] }
        }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return [] }
        // Truncated: another run writes to it.
        if Int(status.st_size) < offset {
            offset = 0
            cutter = LineCutter()
        }
        var events: [TestEvent] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        for _ in 0..<64 {
            let count = buffer.withUnsafeMutableBytes {
                pread(file, $0.baseAddress, $0.count, offset)
            }
            guard count > 0 else { break }
            offset += count
            for line in cutter.lines(in: buffer[..<count]) {
                if let event = TestEvent(line) { events.append(event) } else { unknownLines += 1 }
            }
        }
        return events
    }
}
