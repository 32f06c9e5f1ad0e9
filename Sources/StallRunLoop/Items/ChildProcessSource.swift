// The end of a child process as an event of a loop, by pidfd_open(2).

internal import CLinux
internal import Glibc

/// How a child process ended.
public enum ChildProcessEnd: Equatable, Sendable {
    /// It exited with this status.
    case exited(CInt)
    /// This signal ended it.
    case signalled(CInt)
    /// Other code of this process waited for it first.
    case unknown
}

/// Calls a handler on a loop's thread once a child process has ended, and waits for it, so that no zombie stays.
///
///     let build = try ChildProcessSource(pid: pid) { end in print("the build ended: \(end)") }
///     try loop.add(build, toMode: .common)
///
/// Only this child is waited for. After its call the source is invalid. If the app closes its descriptor, as a daemon
/// closes all, the loop opens another one when it renews its own. In a forked child, which has other children, it reports
/// nothing.
///
/// **Thread safety:** any thread may invalidate; the handler runs on the loop's thread.
public final class ChildProcessSource: Sendable {
    /// The child.
    public let pid: CInt
    let source: DescriptorSource

    /// Makes a source for a child of this process. One that has ended already and was not waited for is reported as
    /// well.
    ///
    /// - Throws: ``LoopError/system(call:errno:)``: `ESRCH` when there is no such process, `EMFILE` without descriptors.
    public init(
        pid: CInt, handler: sending @escaping (ChildProcessEnd) -> Void
    ) throws(LoopError) {
        guard let opened = OpenedDescriptor({ stall_process_descriptor(pid, $0) }) else {
            throw .system(call: "pidfd_open", errno: errno)
        }
        self.pid = pid
        source = DescriptorSource(
            opened: opened, ofProcess: stall_fork_generation(), onCancel: { _ in opened.close() }
        ) { source, _ in
            // The first that the closure captures, where a dump looks for the app's function.
            let call = handler
            guard opened.isOver || opened.isOwn else { return source.watchAgain() }
            var status: CInt = 0
            let end: ChildProcessEnd
            switch stall_process_wait(pid, &status) {
            case 0: end = .exited(status)
            case 1: end = .signalled(status)
            case 2: return
            default: end = .unknown
            }
            source.invalidate()
            call(end)
        }
    }

    /// Removes it from all loops for good. The child is then the caller's to wait for.
    public func invalidate() { source.invalidate() }
}
