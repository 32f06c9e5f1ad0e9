// Text in UTF-16 as UTF-8: what Windows' shells write into a file.

/// Converts a stream whose first bytes say that it is UTF-16, and passes over the mark at its beginning.
final class UTF16Text {
    private let source: ByteStream
    private let isBigEndian: Bool
    private var converted: ArraySlice<UInt8> = []
    /// A byte without its other one, and a surrogate without its other one.
    private var rest: [UInt8] = []

    private init(_ source: ByteStream, isBigEndian: Bool) {
        self.source = source
        self.isBigEndian = isBigEndian
    }

    /// The stream in UTF-8, without a byte order mark.
    static func converting(_ stream: ByteStream) -> ByteStream {
        if stream.peek(3).elementsEqual([0xef, 0xbb, 0xbf]) {
            var mark: (UInt8, UInt8, UInt8) = (0, 0, 0)
            withUnsafeMutableBytes(of: &mark) { _ = stream.next($0) }
            return stream
        }
        let mark = stream.peek(2)
        guard mark.elementsEqual([0xff, 0xfe]) || mark.elementsEqual([0xfe, 0xff]) else {
            return stream
        }
        let text = UTF16Text(stream, isBigEndian: mark.first == 0xfe)
        var marker: (UInt8, UInt8) = (0, 0)
        withUnsafeMutableBytes(of: &marker) { _ = stream.next($0) }
        return ByteStream { text.read($0) }
    }

    private func read(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        while converted.isEmpty {
            var part = [UInt8](repeating: 0, count: 1 << 16)
            let count = part.withUnsafeMutableBytes { source.next($0) }
            if count <= 0 {
                guard count == 0, !rest.isEmpty else { return count }
                (converted, rest) = (Array("\u{fffd}".utf8)[...], [])
                break
            }
            convert(rest + part.prefix(count))
        }
        let given = converted.prefix(buffer.count)
        converted = converted.dropFirst(given.count)
        buffer.copyBytes(from: given)
        return given.count
    }

    private func convert(_ bytes: [UInt8]) {
        let (high, low) = isBigEndian ? (0, 1) : (1, 0)
        var units: [UInt16] = []
        for start in stride(from: 0, to: bytes.count - 1, by: 2) {
            units.append(UInt16(bytes[start + high]) << 8 | UInt16(bytes[start + low]))
        }
        rest = bytes.count % 2 == 1 ? [bytes[bytes.count - 1]] : []
        if let last = units.last, UTF16.isLeadSurrogate(last) {
            units.removeLast()
            rest = Array(bytes[(units.count * 2)...])
        }
        converted = Array(String(decoding: units, as: UTF16.self).utf8)[...]
    }
}
