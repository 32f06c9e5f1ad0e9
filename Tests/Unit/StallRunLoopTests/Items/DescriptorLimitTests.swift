import CLinux
import Foundation
import StallModel
import Testing

@testable import StallRunLoop

/// Goal: two sources of one descriptor cost a duplicate, which is given back, and a limit on descriptors leaves nothing
/// half done. Method: in processes of their own, because other tests open descriptors meanwhile.
@Suite struct DescriptorLimitTests {
    @Test func `the duplicate of a descriptor is closed with its source`() async {
        await #expect(processExitsWith: .success) {
            let loop = EventRunLoop.current
            let watched = stall_eventfd_create()
            try loop.add(DescriptorSource(descriptor: watched) { _, _ in }, toMode: .default)
            let before = openDescriptors()
            let second = DescriptorSource(descriptor: watched, events: .writable) { _, _ in }
            try loop.add(second, toMode: .default)
            guard openDescriptors() == before + 1 else { exit(1) }
            second.invalidate()
            exit(openDescriptors() == before ? 0 : 2)
        }
    }

    @Test func `a descriptor that the second of two common modes refuses is in none`() async {
        await #expect(processExitsWith: .success) {
            let loop = EventRunLoop.current
            loop.addCommonMode("other")
            let watched = stall_eventfd_create()
            try loop.add(DescriptorSource(descriptor: watched) { _, _ in }, toMode: .common)
            // Room for the duplicate of one mode, not of both.
            let next = dup(watched)
            close(next)
            var limit = rlimit(rlim_cur: rlim_t(next + 1), rlim_max: rlim_t(next + 1))
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let second = DescriptorSource(descriptor: watched, events: .writable) { _, _ in }
            do throws(LoopError) {
                try loop.add(second, toMode: .common)
                exit(1)
            } catch {
                guard error == .system(call: "fcntl", errno: EMFILE) else { exit(2) }
            }
            let isThere = [LoopMode.default, "other", .common].contains {
                loop.contains(second, inMode: $0)
            }
            exit(isThere ? 3 : 0)
        }
    }
}

/// Descriptors of the kind that is watched: the testing library opens and closes others in the process.
private func openDescriptors() -> Int {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return names.count {
        let target = try? FileManager.default.destinationOfSymbolicLink(
            atPath: "/proc/self/fd/\($0)")
        return target == "anon_inode:[eventfd]"
    }
}
