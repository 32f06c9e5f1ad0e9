// Disk space in reserve. On a full disk SQLite can neither delete nor fold its log in; with this
// given up it can.

internal import CLinux
internal import Glibc

/// A file of real disk blocks beside an agent's store, shared by the processes that write it.
struct ReserveFile {
    private let path: String
    private let bytes: Int64

    init(besideStore store: String, bytes: Int64) {
        path = store + "-ballast"
        self.bytes = bytes
    }

    /// Takes the space, where there is enough and as much again; space that is held already is kept.
    ///
    /// Taking the last space would fill the disk for the store itself, which would then give the
    /// the reserve file up with some more of its reports, again and again.
    func hold() {
        var system = statvfs()
        guard bytes > 0, FileFacts(path, followsLink: false) == nil,
            statvfs(path.deletingLastComponent, &system) == 0,
            UInt64(system.f_bavail) * UInt64(system.f_frsize) >= 2 * UInt64(bytes)
        else { return }
        let descriptor = stall_descriptor_own(
            open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600))
        guard descriptor >= 0 else { return }
        let error = posix_fallocate(descriptor, 0, off_t(bytes))
        stall_descriptor_end(descriptor)
        if error != 0 { unlink(path) }
    }

    /// Gives the space up. Returns whether there was any.
    @discardableResult
    func release() -> Bool { unlink(path) == 0 }
}
