// Lines of a descriptor, or of memory, in bounded memory: a line that is too long is reported and skipped; one of more
// than a gigabyte ends the reading.

internal import Glibc

/// Reads lines. Does not close the descriptor.
struct LineReader {
    enum Line: Equatable {
        /// Without its end.
        case whole([UInt8])
        case tooLong
    }

    /// The bytes read at a time of a line that is too long, in search of its end.
    private static let longestSkip = 1 << 30

    /// Nil where all that there is to read is in the buffer.
    private let descriptor: CInt?
    private let limit: Int
    private let waits: () -> Bool
    private var buffer = [UInt8](repeating: 0, count: 1 << 16)
    private var unread: Range<Int> = 0..<0
    private(set) var byteCount = 0
    private(set) var errno: CInt = 0

    /// - Parameters:
    ///   - limit: The longest line, in bytes.
    ///   - waits: Waits until there is something to read; false ends the reading there.
    init(descriptor: CInt, limit: Int, waits: @escaping () -> Bool = { true }) {
        self.descriptor = descriptor
        self.limit = limit
        self.waits = waits
    }

    /// Reads the lines of these bytes.
    init(bytes: [UInt8], limit: Int) {
        descriptor = nil
        self.limit = limit
        waits = { true }
        buffer = bytes
        unread = 0..<bytes.count
        byteCount = bytes.count
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
        guard let descriptor else { return false }
        while waits() {
            let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                unread = 0..<count
                byteCount += count
                return true
            }
            if count == 0 { return false }
            // EAGAIN: another reader of the pipe was faster.
            if Glibc.errno != EINTR && Glibc.errno != EAGAIN {
                errno = Glibc.errno
                return false
            }
        }
        return false
    }
}
