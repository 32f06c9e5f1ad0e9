// A file in memory only, for data that another program reads or writes and that needs no disk.

internal import CMemoryFile
internal import Glibc

/// A file without a name, closed on exec.
final class MemoryFile {
    let descriptor: CInt

    /// Nil where there is none to be had; `errno` says why.
    init?() {
        descriptor = stall_memory_file()
        guard descriptor >= 0 else { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Writes from the beginning; false where it fails, and `errno` says why.
    func write(_ bytes: [UInt8]) -> Bool {
        var offset = 0
        while offset < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(descriptor, $0.baseAddress! + offset, bytes.count - offset, off_t(offset))
            }
            guard count > 0 else { return false }
            offset += count
        }
        return true
    }

    /// Its content, or the beginning of that.
    func bytes(limit: Int = .max) -> [UInt8] {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: min(limit, Int(status.st_size)))
        let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        return Array(bytes.prefix(max(0, count)))
    }
}
