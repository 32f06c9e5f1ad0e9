// Whether the process that a report comes from still lives: an open report of a dead one is a hang.

internal import CLinux
internal import Glibc
internal import StallModel

/// The machine and boot that this process runs in.
package struct ProcessLife {
    package let host: String
    package let bootID: String

    /// The machine that this process runs on.
    package static func current() -> ProcessLife {
        var name = [CChar](repeating: 0, count: 256)
        gethostname(&name, name.count - 1)
        let host = name.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
        let bootID = contents(of: "/proc/sys/kernel/random/boot_id") ?? ""
        return ProcessLife(host: host, bootID: String(bootID.prefix { !$0.isNewline }))
    }

    /// The state of a process, as far as it can be seen from here.
    enum Sight {
        case lives
        case isOver
        /// Another machine's processes cannot be seen, nor those of another PID namespace, as of the next container.
        case isUnknown
    }

    /// - Parameter store: The file that its reports are in, which an agent that lives has open.
    func sight(of run: ProcessRun, store: String) -> Sight {
        guard run.host == host else { return .isUnknown }
        guard run.bootID == bootID else { return .isOver }
        if kill(run.pid, 0) == 0 || errno != ESRCH {
            var state = stall_thread_state()
            guard stall_process_read_state(run.pid, &state) == 0 else { return .isUnknown }
            if state.start_ticks == run.startTicks { return state.isOfDead ? .isOver : .lives }
        }
        // It is not here: it has ended, or numbers of processes mean others where it is.
        return StoreHolder.mayBe(run, withStore: store) ? .isUnknown : .isOver
    }

    /// The machine's identifier, as systemd and D-Bus know it.
    static func machineID() -> String {
        let text = contents(of: "/etc/machine-id") ?? contents(of: "/var/lib/dbus/machine-id") ?? ""
        return String(text.prefix { !$0.isWhitespace })
    }

    /// The first 4096 bytes of a file of /proc or /etc.
    static func contents(of path: String) -> String? {
        let descriptor = stall_descriptor_open_to_read(path, 0)
        guard descriptor >= 0 else { return nil }
        defer { stall_descriptor_end(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(descriptor, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
}
