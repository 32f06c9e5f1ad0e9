// Whether a disk has room for a batch: a store of which nothing is written takes its lock on a full disk as well.

internal import Glibc

/// Tries a small write to the disk.
struct RoomProbe: Error, CustomStringConvertible {
    var description: String

    /// Writes some bytes beside a file, where links lead; they are gone at once.
    ///
    /// - Throws: The failure of the write.
    static func write(beside given: String) throws(RoomProbe) {
        guard let real = realpath(given, nil) else { throw RoomProbe("realpath") }
        let path = String(cString: real)
        free(real)
        let slash = path.lastIndex(of: "/")
        let directory = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        // A file without a name; some file systems have none.
        let unnamed = O_DIRECTORY | 0o20000000
        var file = open(directory, O_WRONLY | O_CLOEXEC | unnamed, 0o600)
        if file < 0, errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL {
            let name = path + "-probe"
            file = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
            unlink(name)
        }
        guard file >= 0 else { throw RoomProbe("open") }
        defer { Glibc.close(file) }
        let bytes = [UInt8](repeating: 0, count: 64 << 10)
        errno = 0
        guard Glibc.write(file, bytes, bytes.count) == bytes.count else { throw RoomProbe("write") }
    }

    private init(_ call: String) {
        description = "\(call) failed: \(String(cString: strerror(errno == 0 ? ENOSPC : errno)))"
    }
}
