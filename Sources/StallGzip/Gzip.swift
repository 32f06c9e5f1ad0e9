// gzip in memory, by the system's zlib.

internal import CZlib

package enum Gzip {
    package enum Fault: Error, Equatable {
        /// More than the limit came out, or would go in at once: 4 GB.
        case tooLarge
        /// It is not gzip, is cut short, or something follows it.
        case damaged
        case outOfMemory
    }

    /// The parts, one behind the other, as one member. No name and no time are in its header.
    package static func compress(_ parts: [[UInt8]]) throws(Fault) -> [UInt8] {
        let stream = Stream(end: deflateEnd)
        let status = deflateInit2_(
            stream.state, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzipWindow, 8, Z_DEFAULT_STRATEGY,
            ZLIB_VERSION, Stream.size)
        guard status == Z_OK else { throw .outOfMemory }
        var output: [UInt8] = []
        for part in parts {
            guard part.count <= Int(uInt.max) else { throw .tooLarge }
            _ = stream.run(part, { deflate($0, Z_NO_FLUSH) }, to: &output, limit: .max)
        }
        _ = stream.run([], { deflate($0, Z_FINISH) }, to: &output, limit: .max)
        return output
    }

    /// The content of a gzip file of one member. The size that it claims to have is not believed.
    ///
    /// - Parameter limit: The most bytes that may come out.
    package static func inflate(_ bytes: [UInt8], limit: Int) throws(Fault) -> [UInt8] {
        guard bytes.count <= Int(uInt.max) else { throw .tooLarge }
        let stream = Stream(end: inflateEnd)
        guard inflateInit2_(stream.state, gzipWindow, ZLIB_VERSION, Stream.size) == Z_OK else {
            throw .outOfMemory
        }
        var output: [UInt8] = []
        let status = stream.run(
            bytes, { CZlib.inflate($0, Z_NO_FLUSH) }, to: &output, limit: limit)
        guard output.count <= limit else { throw .tooLarge }
        guard status == Z_STREAM_END, stream.state.pointee.avail_in == 0 else { throw .damaged }
        return output
    }
}

/// The largest window; 16 more: gzip and nothing else.
let gzipWindow: CInt = 15 + 16

/// zlib's state, which may not move.
struct Stream: ~Copyable {
    static let size = CInt(MemoryLayout<z_stream>.size)
    let state: UnsafeMutablePointer<z_stream>
    private let end: (UnsafeMutablePointer<z_stream>) -> CInt

    init(end: @escaping (UnsafeMutablePointer<z_stream>) -> CInt) {
        state = .allocate(capacity: 1)
        state.initialize(to: z_stream())
        self.end = end
    }

    deinit {
        _ = end(state)
        state.deallocate()
    }

    /// Passes a part through, and ends when it has no more to say or more than the limit has come out. The output grows
    /// as bytes come, so that a zip bomb costs only what was unpacked.
    func run(
        _ input: [UInt8], _ step: (UnsafeMutablePointer<z_stream>) -> CInt,
        to output: inout [UInt8], limit: Int
    ) -> CInt {
        input.withUnsafeBufferPointer { input in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1 << 16) { part in
                // It is not written to.
                state.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
                state.pointee.avail_in = uInt(input.count)
                while true {
                    state.pointee.next_out = part.baseAddress
                    state.pointee.avail_out = uInt(part.count)
                    let status = step(state)
                    let count = part.count - Int(state.pointee.avail_out)
                    output.append(contentsOf: part[..<count])
                    guard status == Z_OK, count > 0, output.count <= limit else { return status }
                }
            }
        }
    }
}
