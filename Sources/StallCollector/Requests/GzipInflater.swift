// Unpacks a gzip body into bounded memory. The size that a body claims to have is not believed.

internal import Glibc

/// **Source:** zlib.h, version 1; the layout of `z_stream` on 64-bit Linux has not changed since 1995.
enum GzipInflater {
    enum Fault: Error, Equatable {
        /// More than the limit came out.
        case tooLarge
        /// It is not gzip, is cut short, or something follows it.
        case damaged
        case notInstalled
    }

    private typealias Begin =
        @convention(c) (UnsafeMutableRawPointer, CInt, UnsafePointer<CChar>, CInt) -> CInt
    private typealias Step = @convention(c) (UnsafeMutableRawPointer, CInt) -> CInt
    private typealias End = @convention(c) (UnsafeMutableRawPointer) -> CInt

    private struct Functions: Sendable {
        var begin: Begin
        var step: Step
        var end: End
    }

    private static let functions: Functions? = {
        guard let library = dlopen("libz.so.1", RTLD_NOW),
            let begin = dlsym(library, "inflateInit2_"), let step = dlsym(library, "inflate"),
            let end = dlsym(library, "inflateEnd")
        else { return nil }
        return Functions(
            begin: unsafeBitCast(begin, to: Begin.self), step: unsafeBitCast(step, to: Step.self),
            end: unsafeBitCast(end, to: End.self))
    }()

    private enum Layout {
        static let size = 112
        static let nextIn = 0
        static let availableIn = 8
        static let nextOut = 24
        static let availableOut = 32
    }

    /// The content of a gzip file of one member.
    ///
    /// - Parameter limit: The most bytes that may come out.
    static func inflate(_ bytes: [UInt8], limit: Int) throws(Fault) -> [UInt8] {
        guard let functions else { throw .notInstalled }
        guard !bytes.isEmpty, bytes.count <= Int(UInt32.max) else { throw .damaged }
        let stream = UnsafeMutableRawPointer.allocate(byteCount: Layout.size, alignment: 16)
        stream.initializeMemory(as: UInt8.self, repeating: 0, count: Layout.size)
        defer { stream.deallocate() }
        // 15: the largest window; 16 more: gzip and nothing else.
        guard functions.begin(stream, 15 + 16, "1", CInt(Layout.size)) == 0 else {
            throw .notInstalled
        }
        defer { _ = functions.end(stream) }
        var output: [UInt8] = []
        // Grows as bytes come, so that a small zip bomb costs only the bytes that were unpacked.
        output.reserveCapacity(min(limit, bytes.count * 4))
        let part = UnsafeMutableRawPointer.allocate(byteCount: 1 << 16, alignment: 16)
        defer { part.deallocate() }
        let fault: Fault? = bytes.withUnsafeBytes { input in
            stream.storeBytes(
                of: input.baseAddress, toByteOffset: Layout.nextIn, as: UnsafeRawPointer?.self)
            stream.storeBytes(
                of: UInt32(input.count), toByteOffset: Layout.availableIn, as: UInt32.self)
            while true {
                stream.storeBytes(
                    of: part, toByteOffset: Layout.nextOut, as: UnsafeMutableRawPointer.self)
                stream.storeBytes(of: 1 << 16, toByteOffset: Layout.availableOut, as: UInt32.self)
                let status = functions.step(stream, 0)
                let count =
                    (1 << 16)
                    - Int(stream.load(fromByteOffset: Layout.availableOut, as: UInt32.self))
                if output.count + count > limit { return .tooLarge }
                output.append(contentsOf: UnsafeRawBufferPointer(start: part, count: count))
                let rest = stream.load(fromByteOffset: Layout.availableIn, as: UInt32.self)
                switch status {
                case 1: return rest == 0 ? nil : .damaged  // Z_STREAM_END
                case 0 where count > 0 || rest > 0: continue
                default: return .damaged
                }
            }
        }
        if let fault { throw fault }
        return output
    }
}
