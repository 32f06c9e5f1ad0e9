// gzip unpacked as it is read: of any size, in bounded memory.

internal import CZlib
internal import Glibc

/// Unpacks a stream of one or several gzip members.
package final class GunzipStream {
    private let read: (UnsafeMutableRawBufferPointer) -> Int
    private let stream = Stream(end: inflateEnd)
    private var state: UnsafeMutablePointer<z_stream> { stream.state }
    private let input = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
    private var isAtEnd = false
    /// A member has begun and not ended.
    private var isInside = false
    private var hasMember = false

    /// The two bytes that gzip begins with.
    package static let signature: [UInt8] = [0x1f, 0x8b]

    /// - Parameter read: Fills a buffer with packed bytes: how many, 0 at the end, -1 for a failure in `errno`.
    /// - Returns: Nil when there is no memory for it.
    package init?(_ read: @escaping (UnsafeMutableRawBufferPointer) -> Int) {
        self.read = read
        guard inflateInit2_(stream.state, gzipWindow, ZLIB_VERSION, Stream.size) == Z_OK else {
            return nil
        }
    }

    deinit { input.deallocate() }

    /// Fills the buffer with unpacked bytes.
    ///
    /// - Returns: How many there are in it; 0 at the end; -1 when reading failed or the packed bytes are damaged or cut
    ///   short: then `errno` is `EBADMSG`.
    package func next(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard buffer.count > 0 else { return 0 }
        state.pointee.next_out = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self)
        state.pointee.avail_out = uInt(clamping: buffer.count)
        while state.pointee.avail_out == uInt(clamping: buffer.count) {
            if state.pointee.avail_in == 0, !isAtEnd {
                let count = read(input)
                guard count >= 0 else { return -1 }
                isAtEnd = count == 0
                state.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
                state.pointee.avail_in = uInt(count)
            }
            if state.pointee.avail_in == 0, isAtEnd, !isInside { return 0 }
            // gzip passes over what is behind the last member: tapes and some writers fill up with zeros.
            if hasMember, !isInside, state.pointee.next_in.pointee != Self.signature[0] { return 0 }
            isInside = true
            switch inflate(state, Z_NO_FLUSH) {
            case Z_STREAM_END:
                (isInside, hasMember) = (false, true)
                inflateReset(state)
            case Z_OK: continue
            case Z_BUF_ERROR where !isAtEnd: continue
            default:
                // Where it unpacked something before, the next call fails in the same way.
                guard state.pointee.avail_out == uInt(clamping: buffer.count) else { break }
                errno = EBADMSG
                return -1
            }
        }
        return buffer.count - Int(state.pointee.avail_out)
    }
}
