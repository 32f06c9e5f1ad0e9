// The system's zlib, both ways: debug sections are decompressed, and files that end in `.gz` written. It is loaded when it
// is needed, so that it has to be installed neither to build nor to run; Debian's dpkg has it everywhere.

internal import Glibc

/// A function of a library of the system; nil where it is not installed.
func systemSymbol(_ name: String, of library: String) -> UnsafeMutableRawPointer? {
    dlopen(library, RTLD_NOW).flatMap { dlsym($0, name) }
}

/// **Source:** zlib.h.
enum Zlib {
    fileprivate static func function<Signature>(_ name: String, _: Signature.Type) -> Signature? {
        systemSymbol(name, of: "libz.so.1").map { unsafeBitCast($0, to: Signature.self) }
    }

    /// How many bytes came out; nil when they do not fit, or the input is damaged.
    static func decompress(
        _ bytes: [UInt8], to buffer: UnsafeMutableBufferPointer<UInt8>
    ) -> Int? {
        typealias Uncompress =
            @convention(c) (
                UnsafeMutableRawPointer?, UnsafeMutablePointer<CUnsignedLong>, UnsafeRawPointer?,
                CUnsignedLong
            ) -> CInt
        guard let uncompress = function("uncompress", Uncompress.self) else { return nil }
        var length = CUnsignedLong(buffer.count)
        let status = uncompress(buffer.baseAddress, &length, bytes, CUnsignedLong(bytes.count))
        return status == 0 ? Int(length) : nil
    }
}

/// Writes gzip into a file that is open. No name and no time are in its header: the same reports give the same file.
final class Compressor {
    private typealias Write =
        @convention(c) (OpaquePointer, UnsafeRawPointer?, CUnsignedInt) -> CInt
    private typealias Close = @convention(c) (OpaquePointer) -> CInt

    private var stream: OpaquePointer?
    private let write: Write
    private let close: Close

    /// - Parameter file: Open for writing; it stays open.
    init(to file: CInt) throws(OutputError) {
        typealias Open = @convention(c) (CInt, UnsafePointer<CChar>) -> OpaquePointer?
        guard let open = Zlib.function("gzdopen", Open.self),
            let write = Zlib.function("gzwrite", Write.self),
            let close = Zlib.function("gzclose", Close.self)
        else { throw .notCompressed("libz.so.1 is not installed") }
        // zlib closes what it is given.
        let own = fcntl(file, F_DUPFD_CLOEXEC, 0)
        guard own >= 0 else { throw .notCompressed(String(cString: strerror(errno))) }
        guard let stream = open(own, "wb") else {
            Glibc.close(own)
            throw .notCompressed("there is no memory")
        }
        (self.stream, self.write, self.close) = (stream, write, close)
    }

    /// Takes bytes as `write(2)` does: how many, or -1 and `errno`.
    func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let stream else { return -1 }
        let count = write(stream, bytes.baseAddress, CUnsignedInt(min(bytes.count, 1 << 20)))
        return count > 0 ? Int(count) : -1
    }

    /// Whether all is in the file; otherwise `errno` says why.
    func finish() -> Bool {
        guard let stream else { return true }
        self.stream = nil
        return close(stream) == 0
    }

    deinit { _ = finish() }
}
