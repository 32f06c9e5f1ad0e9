// One line for each request that was answered, as JSON: the request, its token, and the outcome.

internal import Glibc
internal import StallModel
internal import StallQuery

/// A request that was answered.
struct AccessEntry: Sendable {
    /// In seconds since 1970.
    var time: Double
    var request: CollectorRequest
    /// The id of the token; nil without a valid one. The token itself is a secret.
    var token: String?
    var status: Int
    /// Sizes of the bodies, in bytes.
    var received: Int
    var sent: Int
    var seconds: Double

    /// A target may be as long as the head of a request.
    private static let targetLimit = 2048

    /// The line, without its end.
    var line: String {
        let at = UnixTime(microseconds: Int64(time * 1e6)).rfc3339
        var target = request.target
        if target.utf8.count > Self.targetLimit {
            target = String(decoding: target.utf8.prefix(Self.targetLimit), as: UTF8.self) + "..."
        }
        let milliseconds = Int((seconds * 1000).rounded())
        let whole = "\(milliseconds % 1000)"
        let digits = String(repeating: "0", count: 3 - whole.count) + whole
        return """
            {"time":"\(at)","peer":\(request.peer.quotedForJSON),\
            "method":\(request.method.quotedForJSON),"target":\(target.quotedForJSON),\
            "status":\(status),"token":\(token?.quotedForJSON ?? "null"),\
            "received_bytes":\(received),"sent_bytes":\(sent),\
            "seconds":\(milliseconds / 1000).\(digits)}
            """
    }
}

/// Why there is no access log.
package struct AccessLogError: Error, CustomStringConvertible {
    package var description: String
}

/// Appends lines to a file, or to standard error, on a thread of its own: no request waits for a disk.
///
/// A file that was moved or removed is opened again, so that log rotation needs no signal.
package final class AccessLog: Sendable {
    /// Used on the thread only.
    private final class Output: @unchecked Sendable {
        /// Nil for standard error.
        let path: String?
        var file: CInt
        /// The last line was cut off by a full disk.
        var isWithinLine = false
        init(_ path: String?, _ file: CInt) { (self.path, self.file) = (path, file) }

        /// - Returns: Whether the whole line was written.
        func write(_ line: String) -> Bool {
            if let path { reopenIfMoved(path) }
            let bytes = Array(((isWithinLine ? "\n" : "") + line + "\n").utf8)
            let count = Glibc.write(file, bytes, bytes.count)
            if count > 0 { isWithinLine = count != bytes.count }
            return count == bytes.count
        }

        func close() {
            if path != nil, file >= 0 { Glibc.close(file) }
            file = -1
        }

        private func reopenIfMoved(_ path: String) {
            var (there, own) = (stat(), stat())
            let isSame =
                stat(path, &there) == 0 && fstat(file, &own) == 0
                && there.st_dev == own.st_dev && there.st_ino == own.st_ino
            guard !isSame else { return }
            let new = Self.open(path)
            guard new >= 0 else { return }
            if file >= 0 { Glibc.close(file) }
            (file, isWithinLine) = (new, false)
        }

        static func open(_ path: String) -> CInt {
            // A pipe that is not read is refused, and one that is full takes nothing.
            Glibc.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0o640)
        }
    }

    private let output: Output
    private let queue: LineQueue

    /// - Parameter path: `-` is standard error.
    package init(_ path: String) throws(AccessLogError) {
        var file = STDERR_FILENO
        if path != "-" {
            file = Output.open(path)
            guard file >= 0 else {
                throw AccessLogError(description: "\(path): \(String(cString: strerror(errno)))")
            }
        }
        let output = Output(path == "-" ? nil : path, file)
        self.output = output
        queue = LineQueue("stall-access", limit: 10_000) { output.write($0) }
    }

    /// The lines that could not be written.
    var droppedCount: Int64 { queue.droppedCount }

    func add(_ entry: AccessEntry) { queue.add(entry.line) }

    /// Writes the lines that wait, as far as they are written in time, and closes the file.
    func stop(within seconds: Double = 2) {
        guard queue.stop(within: seconds) else { return }
        output.close()
    }
}
