// Whether a process that has another number here may live. In containers of one machine, or of one pod, processes of the
// others have no number, but the locks that they hold on a store that both have can still be asked for. Those of a namespace
// below have other numbers here, and /proc says theirs.

internal import CLinux
internal import Glibc
internal import StallModel

enum StoreHolder {
    /// SQLite keeps a lock on these bytes as long as it has a store with a log open: https://sqlite.org/src/file/src/os.h,
    /// `SHARED_FIRST`.
    private static let shared: (first: Int, count: Int) = (0x4000_0002, 510)

    /// Whether the run's process may live: it is in a namespace below, or one that cannot be seen has the store open.
    ///
    /// Of several that have it open the kernel says one: a process that can be seen may hide one that cannot.
    static func mayBe(_ run: ProcessRun, withStore path: String) -> Bool {
        other(ofStore: path) == 0 || isAnyProcess(run)
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

    private static func isAnyProcess(_ run: ProcessRun) -> Bool {
        var processes = stall_numbers()
        guard stall_numbers_open(&processes, "/proc") else { return false }
        defer { stall_numbers_close(&processes) }
        while true {
            let process = stall_numbers_next(&processes)
            guard process >= 0 else { return false }
            if ownNumber(of: process) == run.pid, isStarted(process, at: run.startTicks) {
                return true
            }
        }
    }

    /// Its number in its own PID namespace, the last of "NSpid:\t4711\t12".
    private static func ownNumber(of process: pid_t) -> pid_t? {
        let status = ProcessLife.contents(of: "/proc/\(process)/status") ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("NSpid:") }
        return line?.split(separator: "\t").last.flatMap { pid_t($0) }
    }

    /// Whether it lives, and began at the time in ticks that it read itself.
    private static func isStarted(_ process: pid_t, at ticks: UInt64) -> Bool {
        var state = stall_thread_state()
        guard stall_process_read_state(process, &state) == 0, !state.isOfDead else { return false }
        if state.start_ticks == ticks { return true }
        // In a time namespace the machine began at another time.
        let shift = bootShift(of: "\(process)") - bootShift(of: "self")
        let difference = Int64(clamping: ticks) - Int64(clamping: state.start_ticks)
        let perSecond = Double(sysconf(CInt(_SC_CLK_TCK)))
        return shift != 0 && abs(Double(difference) - shift * perSecond) <= 1
    }

    /// The seconds that a process's time namespace adds to the time since boot.
    private static func bootShift(of process: String) -> Double {
        let text = ProcessLife.contents(of: "/proc/\(process)/timens_offsets") ?? ""
        let words = text.split(separator: "\n").first { $0.hasPrefix("boottime") }?
            .split(separator: " ")
        guard let words, words.count == 3, let seconds = Double(words[1]),
            let nanoseconds = Double(words[2])
        else { return 0 }
        return seconds + nanoseconds / 1e9
    }
}

extension stall_thread_state {
    /// Of a process that has ended.
    var isOfDead: Bool { [UInt8(ascii: "Z"), UInt8(ascii: "X")].contains(letter) }
}
