// Whether a process that has another number here has a store open. In containers of one machine, or of one pod, processes of
// the others have no number; those of a namespace below have others. The locks that they hold on a file that both have can
// still be asked for.

internal import CLinux
internal import Glibc

enum StoreHolder {
    /// SQLite keeps a lock on these bytes as long as it has a store with a log open: https://sqlite.org/src/file/src/os.h,
    /// `SHARED_FIRST`.
    private static let shared: (first: Int, count: Int) = (0x4000_0002, 510)

    /// Whether the process that began at a time may have the store open under another number.
    ///
    /// Of several that have it open the kernel says one: a process that can be seen may hide one that cannot.
    static func mayBe(startedAt ticks: UInt64, ofStore path: String) -> Bool {
        guard let holder = other(ofStore: path) else { return false }
        return holder == 0 || isAnyProcess(startedAt: ticks)
    }

    /// A process other than this one that has the store open, zero if it has no number here; nil without one.
    private static func other(ofStore path: String) -> pid_t? {
        // Closing any descriptor of a file drops all locks of this process on it: only where its descriptors can be
        // listed is it known to have none.
        guard let facts = FileFacts(path), access("/proc/thread-self/fd", F_OK) == 0 else {
            return nil
        }
        let identity = stall_file_identity(device: facts.device, inode: facts.inode)
        var own: CInt = -1
        if stall_descriptors_of(identity, &own, 1) == 1 { return holder(own) }
        let descriptor = stall_descriptor_open_to_read(path, 0)
        guard descriptor >= 0 else { return nil }
        defer { stall_descriptor_end(descriptor) }
        return holder(descriptor)
    }

    /// A lock of this process does not count.
    private static func holder(_ descriptor: CInt) -> pid_t? {
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        (lock.l_start, lock.l_len) = (shared.first, shared.count)
        let isLocked = fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
        return isLocked ? lock.l_pid : nil
    }

    /// A process of a namespace below has another number here, and the same time.
    private static func isAnyProcess(startedAt ticks: UInt64) -> Bool {
        var processes = stall_numbers()
        guard stall_numbers_open(&processes, "/proc") else { return false }
        defer { stall_numbers_close(&processes) }
        while true {
            let process = stall_numbers_next(&processes)
            guard process >= 0 else { return false }
            var state = stall_thread_state()
            if stall_process_read_state(process, &state) == 0, state.start_ticks == ticks,
                !state.isOfDead
            {
                return true
            }
        }
    }
}

extension stall_thread_state {
    /// Of a process that has ended.
    var isOfDead: Bool { [UInt8(ascii: "Z"), UInt8(ascii: "X")].contains(letter) }
}
