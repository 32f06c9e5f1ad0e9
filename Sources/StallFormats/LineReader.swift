// Lines of a stream in bounded memory: a line that is too long is reported and skipped; one of more than a gigabyte ends the
// reading.

internal import Glibc

/// Reads lines.
struct LineReader {
    enum Line: Equatable {
        /// Without its end.
        case whole([UInt8])
        case tooLong
    }

    /// The bytes read at a time of a line that is too long, in search of its end.
    private static let longestSkip = 1 << 30

    private let stream: ByteStream
    private let limit: Int
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)
    private var unread: Range<Int> = 0..<0
    var byteCount: Int { stream.byteCount }
    /// Why reading failed, once all lines before are read.
    private(set) var errno: CInt = 0

    /// - Parameter limit: The longest line, in bytes.
    init(_ stream: ByteStream, limit: Int) {
        self.stream = stream
        self.limit = limit
    }

    /// The next line; nil at the end, or when reading fails: then `errno` is not 0.
    mutating func next() -> Line? {
        var line: [UInt8] = []
        var (isTooLong, hasBegun, skipped) = (false, false, 0)
        while true {
            if unread.isEmpty {
                guard fill() else { break }
            }
            hasBegun = true
            let end = endOfLine()
            let part = unread.lowerBound..<(end ?? unread.upperBound)
            if isTooLong || line.count + part.count > limit {
                isTooLong = true
                line.removeAll()
                skipped += part.count
                // No lines at all: /dev/zero, or the wrong device.
                guard skipped <= Self.longestSkip else {
                    errno = EFBIG
                    break
                }
            } else {
                line += buffer[part]
            }
            unread = (end.map { $0 + 1 } ?? unread.upperBound)..<unread.upperBound
            if end != nil { break }
        }
        guard hasBegun, errno == 0 else { return nil }
        if isTooLong { return .tooLong }
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        return .whole(line)
    }

    /// All bytes behind the last line; nil if there are more, or when reading fails: then `errno` is not 0.
    mutating func takeRest(limit: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        repeat {
            guard bytes.count + unread.count <= limit else { return nil }
            bytes += buffer[unread]
            unread = 0..<0
        } while fill()
        return errno == 0 ? bytes : nil
    }

    /// Where the next line end in the buffer is.
    private func endOfLine() -> Int? {
        buffer.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress,
                let found = memchr(start + unread.lowerBound, 0x0a, unread.count)
            else { return nil }
            return found - UnsafeMutableRawPointer(mutating: start)
        }
    }

    private mutating func fill() -> Bool {
        let count = buffer.withUnsafeMutableBytes(stream.next)
        if count < 0 { errno = stream.errno }
        unread = 0..<max(0, count)
        return count > 0
    }
}
