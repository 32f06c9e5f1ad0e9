// Whether the control group of this process has used up its CPU quota. Both versions of the interface; where there is no
// quota or it cannot be read, the answer is nil.

internal import Glibc
internal import Synchronization

/// Reads how often the process was throttled: the sum over its control group and the groups above.
///
/// **Source:** Documentation/admin-guide/cgroup-v2.rst, "cpu.stat"; Documentation/scheduler/sched-bwc.rst.
final class ControlGroupProbe: Sendable {
    private let files: [CInt]

    init() {
        files = Self.statisticsPaths().compactMap { path in
            let file = open(path, O_RDONLY | O_CLOEXEC)
            return file >= 0 ? file : nil
        }
    }

    deinit { for file in files { close(file) } }

    /// The periods in which the quota ran out so far.
    func throttleCount() -> Int? {
        let counts = files.compactMap { file -> Int? in
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 2048) { text in
                let count = pread(file, text.baseAddress!, text.count, 0)
                guard count > 0 else { return nil }
                for line in text[..<count].split(separator: UInt8(ascii: "\n")) {
                    let words = line.split(separator: UInt8(ascii: " "))
                    if words.count == 2, words[0].elementsEqual("nr_throttled".utf8) {
                        return Int(String(decoding: words[1], as: UTF8.self))
                    }
                }
                return nil
            }
        }
        return counts.isEmpty ? nil : counts.reduce(0, +)
    }

    /// `cpu.stat` of the process's group and of every group above it that is visible here.
    private static func statisticsPaths() -> [String] {
        let groups = lines(of: "/proc/self/cgroup").map {
            $0.split(separator: ":", omittingEmptySubsequences: false)
        }
        let mounts = lines(of: "/proc/self/mountinfo").map { $0.split(separator: " ") }
        var paths: [String] = []
        for group in groups where group.count >= 3 {
            let controllers = group[1].split(separator: ",")
            let isUnified = controllers.isEmpty
            guard isUnified || controllers.contains("cpu") else { continue }
            let mount = mounts.first { fields in
                guard let dash = fields.firstIndex(of: "-"), fields.count > dash + 3 else {
                    return false
                }
                let options = fields[dash + 3].split(separator: ",")
                return isUnified
                    ? fields[dash + 1] == "cgroup2"
                    : fields[dash + 1] == "cgroup" && options.contains("cpu")
            }
            guard let mount, mount.count > 4 else { continue }
            // Inside a container the mount may show a part of the hierarchy only.
            var path = group[2...].joined(separator: ":")
            if mount[3] != "/", path.hasPrefix(mount[3]) { path.removeFirst(mount[3].count) }
            var parts = path.split(separator: "/")
            while true {
                paths.append(
                    ([String(mount[4])] + parts.map(String.init)).joined(separator: "/")
                        + "/cpu.stat")
                if parts.popLast() == nil { break }
            }
        }
        return paths
    }

    private static func lines(of path: String) -> [Substring] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var text: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 1 << 14)
        while text.count < 1 << 20 {
            let count = read(file, &block, block.count)
            guard count > 0 else { break }
            text += block[..<count]
        }
        return String(decoding: text, as: UTF8.self).split(separator: "\n")
    }
}
