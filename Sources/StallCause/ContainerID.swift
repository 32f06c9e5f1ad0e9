// The container that this process runs in, as its runtime numbers it: what a cluster's own tools call it.

/// The number of this process's container: 64 hexadecimal digits.
///
/// A runtime names the control group after it, which a container with a namespace of its own for groups does not see; or
/// mounts files of a folder with its name. A pod's sandbox has such a folder too, and is not the container.
///
/// **Source:** moby, "daemon/initlayer"; containerd's and CRI-O's scopes, `cri-containerd-ID.scope` and `crio-ID.scope`.
package enum ContainerID {
    /// Read from `/proc`; nil outside of a container, or where the runtime does not show it.
    package static func current() -> String? {
        find(
            groups: ControlGroup.lines(of: "/proc/thread-self/cgroup"),
            mounts: ControlGroup.lines(of: "/proc/thread-self/mountinfo"))
    }

    package static func find(groups: [Substring], mounts: [Substring]) -> String? {
        for group in groups {
            guard let last = group.split(separator: "/").last else { continue }
            let name = last.hasSuffix(".scope") ? last.dropLast(6) : last
            if let id = name.split(separator: "-").last, isNumber(id) { return String(id) }
        }
        for mount in mounts {
            let fields = mount.split(separator: " ")
            guard fields.count > 4, files.contains(fields[4]) else { continue }
            let folders = fields[3].split(separator: "/")
            for (parent, folder) in zip(folders, folders.dropFirst())
            where parent.hasSuffix("containers") && isNumber(folder) {
                return String(folder)
            }
        }
        return nil
    }

    private static let files: [Substring] = ["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"]

    private static func isNumber(_ text: Substring) -> Bool {
        text.utf8.count == 64
            && text.utf8.allSatisfy { 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }
    }
}
