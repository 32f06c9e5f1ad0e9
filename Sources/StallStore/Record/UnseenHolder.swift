// Whether a process that cannot be seen from here has a store open. In containers of one machine, or of one pod, processes
// of the others have no number; the locks that they hold on a file that both have can still be asked for.

internal import CLinux
internal import Glibc

enum UnseenHolder {
    /// SQLite keeps a lock on these bytes as long as it has a store with a log open: https://sqlite.org/src/file/src/os.h,
    /// `SHARED_FIRST`.
    private static let shared: (first: Int, count: Int) = (0x4000_0002, 510)

    /// Of several that have it open the kernel says one: a process that can be seen may hide one that cannot.
    static func exists(ofStore path: String) -> Bool {
        guard let facts = FileFacts(path) else { return false }
        let identity = stall_file_identity(device: facts.device, inode: facts.inode)
        var own: CInt = -1
        if stall_descriptors_of(identity, &own, 1) == 1 { return isLocked(own) }
        // Closing any descriptor of a file drops all locks of this process on it. Here it has none.
        let descriptor = stall_descriptor_open_to_read(path, 0)
        guard descriptor >= 0 else { return false }
        defer { stall_descriptor_end(descriptor) }
        return isLocked(descriptor)
    }

    /// A process without a number here has 0; a lock of this process does not count.
    private static func isLocked(_ descriptor: CInt) -> Bool {
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        (lock.l_start, lock.l_len) = (shared.first, shared.count)
        return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
            && lock.l_pid == 0
    }
}
