// Identifies this process among all others. Neither argv nor the environment: they may contain secrets.

internal import CLinux
internal import Glibc
internal import StallModel

extension ProcessRun {
    /// The calling process.
    static func current(app: String, version: String, buildID: BuildID?) -> ProcessRun {
        let now = UnixTime(microseconds: stall_unix_us())
        var random = SystemRandomNumberGenerator()
        return ProcessRun(
            id: UniqueID(version7At: now, random: &random), app: app, version: version,
            buildID: buildID,
            host: hostName(), pid: getpid(),
            bootID: firstLine(of: "/proc/sys/kernel/random/boot_id") ?? "",
            startTicks: startTicks(), started: now)
    }

    private static func hostName() -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { name in
            name.initialize(repeating: 0)
            guard gethostname(name.baseAddress!, 255) == 0 else { return "unknown" }
            return String(cString: name.baseAddress!)
        }
    }

    /// Field 22 of `/proc/self/stat`. The name in field 2 may contain spaces and parentheses: count from the last one.
    private static func startTicks() -> UInt64 {
        guard let line = firstLine(of: "/proc/self/stat"), let name = line.lastIndex(of: ")") else {
            return 0
        }
        let fields = line[name...].split(separator: " ")
        return fields.count > 20 ? UInt64(fields[20]) ?? 0 : 0
    }

    private static func firstLine(of path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 4096) { bytes in
            let count = read(descriptor, bytes.baseAddress!, bytes.count)
            guard count > 0 else { return nil }
            let line = bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }
            return String(decoding: line, as: UTF8.self)
        }
    }
}
