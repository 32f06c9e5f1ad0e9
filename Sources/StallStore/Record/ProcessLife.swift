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

    /// Whether the process was started on this machine since it was booted.
    func isPlace(of run: ProcessRun) -> Bool { run.host == host && run.bootID == bootID }

    /// True only when it is certain: another machine's processes cannot be seen from here.
    func isOver(_ run: ProcessRun) -> Bool {
        guard run.host == host else { return false }
        guard run.bootID == bootID else { return true }
        if kill(run.pid, 0) != 0 && errno == ESRCH { return true }
        var state = stall_thread_state()
        guard stall_process_read_state(run.pid, &state) == 0 else { return false }
        let isDead = [UInt8(ascii: "Z"), UInt8(ascii: "X")].contains(state.letter)
        return state.start_ticks != run.startTicks || isDead
    }

    /// The machine's identifier, as systemd and D-Bus know it.
    static func machineID() -> String {
        let text = contents(of: "/etc/machine-id") ?? contents(of: "/var/lib/dbus/machine-id") ?? ""
        return String(text.prefix { !$0.isWhitespace })
    }

    private static func contents(of path: String) -> String? {
        let descriptor = stall_descriptor_open_to_read(path, 0)
        guard descriptor >= 0 else { return nil }
        defer { stall_descriptor_end(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(descriptor, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }
}
