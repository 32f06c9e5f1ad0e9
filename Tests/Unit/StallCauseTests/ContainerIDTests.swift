import Testing

@testable import StallCause

/// Goal: a container's number is found as runtimes show it, and nothing else is taken for one.
/// Method: lines of /proc as Docker, containerd, CRI-O and Podman make them, in both versions of control groups.
@Suite struct ContainerIDTests {
    static let id = String(repeating: "4e", count: 32)
    static let other = String(repeating: "b1", count: 32)

    func found(_ groups: String = "0::/", _ mounts: String = "") -> String? {
        ContainerID.find(
            groups: groups.split(separator: "\n"), mounts: mounts.split(separator: "\n"))
    }

    @Test(arguments: [
        "12:cpu,cpuacct:/docker/\(id)\n0::/",
        "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-\(id).scope",
        "3:cpu:/kubepods/besteffort/pod0a1b/\(id)",
        "0::/system.slice/docker-\(id).scope",
        "0::/machine.slice/libpod-\(id).scope",
        "0::/kubepods/crio-\(id)",
    ])
    func `a control group bears it`(groups: String) {
        #expect(found(groups) == Self.id)
    }

    @Test(arguments: [
        "612 600 254:1 /docker/containers/\(id)/hostname /etc/hostname rw - ext4 /dev/vda1 rw",
        "9 8 0:2 /var/lib/c/overlay-containers/\(id)/userdata/hosts /etc/hosts rw - ext4 a rw",
    ])
    func `a mounted file's folder bears it`(mounts: String) {
        #expect(found("0::/", mounts) == Self.id)
    }

    @Test func `a pod's sandbox and other folders do not`() {
        let sandbox =
            "/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes/\(Self.other)/hostname"
        #expect(found("0::/", "9 8 0:2 \(sandbox) /etc/hostname rw - ext4 /dev/vda1 rw") == nil)
        #expect(
            found("0::/", "9 8 0:2 /data/containers/\(Self.other)/x /data rw - ext4 /dev/b rw")
                == nil)
    }

    @Test func `a machine without containers has none`() {
        #expect(found("0::/user.slice/user-1000.slice/session-2.scope", "") == nil)
        #expect(found("4:memory:/jobs/872c83a15d861d216b334a1cbada49ba", "1 2 3") == nil)
        #expect(found("", "\n \n9 8") == nil)
    }
}
