// The bytes of a file, a pipe or of memory, read in order and once. The first ones can be looked at before.

internal import Glibc

/// A sequence of bytes that is read once.
package final class ByteStream {
    /// Fills the buffer as far as it can.
    ///
    /// - Returns: How many bytes it filled; 0 at the end; -1 when reading failed, with the reason in `errno`.
    package typealias Read = (UnsafeMutableRawBufferPointer) -> Int

    private let read: Read
    private let close: () -> Void
    private var ahead: ArraySlice<UInt8> = []
    /// How many bytes were read.
    private(set) var byteCount = 0
    /// Why reading failed; 0 while it has not. Bytes from before may be left.
    private(set) var errno: CInt = 0

    /// - Parameter close: Called when this goes.
    package init(_ read: @escaping Read, close: @escaping () -> Void = {}) {
        self.read = read
        self.close = close
    }

    /// - Parameters:
    ///   - closesIt: Closes the descriptor when this goes.
    ///   - waits: Waits until there is something to read; false ends the reading there.
    package convenience init(
        descriptor: CInt, closesIt: Bool, waits: @escaping () -> Bool = { true }
    ) {
        self.init(
            { buffer in
                while waits() {
                    let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                    // EAGAIN: another reader of the pipe was faster.
                    if count >= 0 || (Glibc.errno != EINTR && Glibc.errno != EAGAIN) {
                        return count
                    }
                }
                return 0
            },
            close: { if closesIt { _ = Glibc.close(descriptor) } })
    }

    package convenience init(bytes: [UInt8]) {
        self.init { _ in 0 }
        ahead = bytes[...]
        byteCount = bytes.count
    }

    deinit { close() }

    /// The bytes that the next reads give, without taking them: as many, or all that there are.
    ///
    /// - Parameter suffices: Called after each read; true ends the waiting for more.
    package func peek(
        _ count: Int, suffices: (ArraySlice<UInt8>) -> Bool = { _ in false }
    ) -> ArraySlice<UInt8> {
        while ahead.count < count, !suffices(ahead) {
            var part = [UInt8](repeating: 0, count: count - ahead.count)
            let read = part.withUnsafeMutableBytes(fill)
            guard read > 0 else { break }
            ahead += part.prefix(read)
        }
        return ahead.prefix(count)
    }

    /// Reads the next bytes.
    ///
    /// - Returns: How many there are in the buffer; 0 at the end; -1 when reading failed, with the reason in `errno`.
    package func next(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard !ahead.isEmpty else { return fill(buffer) }
        let part = ahead.prefix(buffer.count)
        ahead = ahead.dropFirst(part.count)
        buffer.copyBytes(from: part)
        // A slice that is empty keeps the memory of all that it was a part of.
        if ahead.isEmpty { ahead = [] }
        return part.count
    }

    private func fill(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard errno == 0 else {
            Glibc.errno = errno
            return -1
        }
        let count = read(buffer)
        if count < 0 { errno = Glibc.errno } else { byteCount += count }
        return count
    }
}
