import CLinux
import Foundation
import LoopConformance
import StallModel
import TestSupport
import Testing

@testable import StallRunLoop

/// Goal: a loop takes no descriptors that it does not give back, and a limit on them leaves nothing half done and ends no
/// process. Method: in processes of their own, because other tests open descriptors meanwhile.
@Suite struct DescriptorLimitTests {
    @Test func `two sources of one descriptor take no third one`() async {
        await #expect(processExitsWith: .success) {
            let loop = EventRunLoop.current
            let watched = stall_eventfd_create()
            try loop.add(DescriptorSource(descriptor: watched) { _, _ in }, toMode: .default)
            let before = ownDescriptors("eventfd")
            let second = DescriptorSource(descriptor: watched, events: .writable) { _, _ in }
            try loop.add(second, toMode: .default)
            exit(ownDescriptors("eventfd") == before ? 0 : 1)
        }
    }

    /// Method: a shell closes it. Dispatch would open the main queue's descriptor under that number, and the program read that for
    /// ever.
    @Test func `standard input that is closed is refused`() throws {
        let path = BuiltProgram.directory.appending(path: "StandardInput").path
        let shell = URL(filePath: "/bin")
        let program = try BuiltProgram("sh", ["-c", "exec '\(path)' <&-"], in: shell).finish()
        #expect(program.status != 0 && program.output == "")
        #expect(program.errors.contains("epoll_ctl failed with errno \(EBADF)"))
    }

    /// The app would read, or print, there.
    @Test func `nothing that is opened takes the number of standard input or output`() async {
        await #expect(processExitsWith: .success) {
            for number in CInt(0)...2 { close(number) }
            let signals = try SignalSource([SIGUSR2]) { _, _ in }
            let files = try FileSource(path: "/") { _, _ in }
            let child = try ChildProcessSource(pid: forkProcess { 0 }) { _ in }
            let sockets = try MessageSockets()
            let numbers = [
                signals.source.descriptor, files.source.descriptor, child.source.descriptor,
                sockets.own, sockets.peer,
            ]
            guard numbers.allSatisfy({ $0 > 2 }) else { exit(1) }
            exit(0)
        }
    }

    @Test func `what stands in for a file is closed with its source`() async {
        await #expect(processExitsWith: .success) {
            let loop = EventRunLoop.current
            let file = open("/proc/self/exe", O_RDONLY)
            loop.run(for: .zero)
            let before = ownDescriptors("eventfd")
            for end in 0..<3 {
                var source: DescriptorSource? = DescriptorSource(descriptor: file) { _, _ in }
                try loop.add(source!, toMode: .default)
                guard ownDescriptors("eventfd") == before + 1 else { exit(1) }
                switch end {
                case 0: source!.invalidate()
                case 1: loop.remove(source!, fromMode: .default)
                default: loop.threadEnded()
                }
                source = nil
                guard ownDescriptors("eventfd") == before else { exit(2 + CInt(end)) }
            }
            exit(0)
        }
    }

    @Test func `a descriptor that the second of two common modes refuses is in none`() async {
        await #expect(processExitsWith: .success) {
            let loop = EventRunLoop.current
            loop.addCommonMode("other")
            loop.add(LoopSource { _ in }, toMode: .common)
            let eventfd = stall_eventfd_create()
            try loop.add(DescriptorSource(descriptor: eventfd) { _, _ in }, toMode: .common)
            let file = open("/proc/self/exe", O_RDONLY)
            // Room for what stands in for the file in one mode, not in both.
            let next = dup(file)
            limitDescriptors(to: next + 1)
            // Another thread of the test runner may close one at any time: then there was room for both, and it counts for
            // nothing.
            var source: DescriptorSource
            var refusal: LoopError?
            repeat {
                while dup(file) >= 0 {}
                close(next)
                source = DescriptorSource(descriptor: file) { _, _ in }
                do throws(LoopError) {
                    try loop.add(source, toMode: .common)
                    source.invalidate()
                } catch {
                    refusal = error
                }
            } while refusal == nil
            guard refusal == .system(call: "eventfd", errno: EMFILE) else { exit(2) }
            let isThere = [LoopMode.default, "other", .common].contains {
                loop.contains(source, inMode: $0)
            }
            exit(isThere ? 3 : 0)
        }
    }

    @Test func `no descriptor of a loop has the number of a standard stream`() async {
        await #expect(processExitsWith: .success) {
            for number in CInt(0)...2 { close(number) }
            onFreshThread {
                let loop = EventRunLoop.current
                loop.perform(after: .milliseconds(1)) {}
                loop.run()
                loop.post {}
                _ = try? loop.fileDescriptor()
                let isTaken = (CInt(0)...2).contains { stall_descriptor_is_own($0) }
                exit(isTaken ? 1 : 0)
            }
        }
    }

    /// The tool tries 0 to 12 on its main thread and on others. The main loop asks Dispatch for a descriptor, which would end
    /// the process if there were none.
    @Test func `a loop works with however few descriptors are left`() throws {
        let text = try BuiltProgram("conformance", ["--descriptors"]).finish().output
        #expect(text.hasSuffix("descriptors processes=27 failed=0\n"), "\(text)")
    }
}

private func limitDescriptors(to count: CInt) {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = rlim_t(count)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
