// The lines of a text that some other program wrote, numbered, one of which may be put back.

internal import Glibc

/// Lines from 1.
struct TextLines {
    private var reader: LineReader
    private var isPutBack = false
    /// The line that was read last, without its end.
    private(set) var line: [UInt8] = []
    /// Its number.
    private(set) var number = 0
    var byteCount: Int { reader.byteCount }
    var errno: CInt { reader.errno }
    /// Why reading failed.
    var failure: String { String(cString: strerror(reader.errno)) }

    init(_ stream: ByteStream, limit: Int = 1 << 20) {
        reader = LineReader(stream, limit: limit)
    }

    init(_ text: String) { self.init(ByteStream(bytes: Array(text.utf8))) }

    /// The next line; nil at the end. One that is longer than the limit is empty: it is noise between reports.
    mutating func next() -> [UInt8]? {
        if isPutBack {
            isPutBack = false
            return line
        }
        guard let next = reader.next() else { return nil }
        number += 1
        switch next {
        case .whole(let bytes): line = bytes
        case .tooLong: line = []
        }
        return line
    }

    /// The next line as text, in which bytes that are not UTF-8 are replaced.
    mutating func nextText() -> String? {
        next().map { String(decoding: $0, as: UTF8.self) }
    }

    /// All bytes from the next line on, for a format without lines; nil if there are more, or reading fails.
    mutating func takeBytes(limit: Int) -> [UInt8]? {
        number += 1
        return reader.takeRest(limit: limit)
    }

    /// The next call of `next` gives the last line again.
    mutating func putBack() { isPutBack = true }
}
