// gzip written into a file, by the system's zlib.

internal import CZlib
internal import Glibc

/// Writes gzip into a file that is open. No name and no time are in its header: the same bytes give the same file.
package final class GzipFile {
    private var stream: gzFile?

    /// - Parameter file: Open for writing; it stays open.
    /// - Returns: Nil when there is no descriptor or memory for it; `errno` has the reason.
    package init?(to file: CInt) {
        // zlib closes what it is given.
        let own = fcntl(file, F_DUPFD_CLOEXEC, 0)
        guard own >= 0 else { return nil }
        stream = gzdopen(own, "wb")
        guard stream != nil else {
            close(own)
            errno = ENOMEM
            return nil
        }
    }

    /// Takes bytes as `write(2)` does: how many, or -1 and `errno`.
    package func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let stream else { return -1 }
        let count = gzwrite(stream, bytes.baseAddress, CUnsignedInt(min(bytes.count, 1 << 20)))
        return count > 0 ? Int(count) : -1
    }

    /// Whether all is in the file; otherwise `errno` says why.
    package func finish() -> Bool {
        guard let stream else { return true }
        self.stream = nil
        return gzclose(stream) == Z_OK
    }

    deinit { _ = finish() }
}
