// How much the CPU quotas of this process's control groups, its own and its parents', have delayed it. Verdict and
// evidence both use this one reader, so that they rest on the same numbers.

internal import CLinux
internal import Glibc
internal import StallModel

/// The control groups of this process, found once.
///
/// **Thread safety:** any thread. **Cost:** one file in `/sys` opened and read per group, 6 us; no allocation.
/// **Source:** Documentation/admin-guide/cgroup-v2.rst, "cpu.stat"; Documentation/scheduler/sched-bwc.rst.
package final class ControlGroup: Sendable {
    // Unsafe because of its pointers: nothing writes to the paths until `deinit`.
    private nonisolated(unsafe) let group: stall_control_group

    package init() {
        var group = stall_control_group()
        for path in Self.statisticsPaths() { stall_control_group_add(&group, path) }
        self.group = group
    }

    deinit {
        var group = group
        stall_control_group_close(&group)
    }

    /// The totals so far; nil if the kernel does not count them.
    package func throttling() -> Throttling? {
        var snapshot = stall_throttling()
        withUnsafePointer(to: group) { stall_control_group_read($0, &snapshot) }
        guard snapshot.is_readable else { return nil }
        return Throttling(
            count: Int(clamping: snapshot.throttle_count),
            time: .microseconds(snapshot.throttled_us))
    }

    /// The number of periods in which a quota ran out, and the time. The kernel adds the time when a throttling is
    /// over.
    package struct Throttling: Equatable, Sendable {
        package var count: Int
        package var time: Duration
    }

    /// `cpu.stat` of the process's group and of every group above it that is visible here.
    private static func statisticsPaths() -> [String] {
        let groups = lines(of: "/proc/thread-self/cgroup").map {
            $0.split(separator: ":", omittingEmptySubsequences: false)
        }
        let mounts = lines(of: "/proc/thread-self/mountinfo").map { $0.split(separator: " ") }
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
            // In a container the mount may show only a part of the hierarchy.
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

    static func lines(of path: String) -> [Substring] {
        let file = stall_descriptor_open_to_read(path, 0)
        guard file >= 0 else { return [] }
        defer { stall_descriptor_end(file) }
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
