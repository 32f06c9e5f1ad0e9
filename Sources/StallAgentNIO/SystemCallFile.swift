// Reads which system call a thread is in, to poll a loop whose waits are not intercepted.

#if NIO
internal import CLinux
internal import Glibc
internal import StallModel

/// The file `/proc/self/task/TID/syscall`, opened once.
final class SystemCallFile: Sendable {
    private let descriptor: Int32

    init(_ thread: ThreadID) {
        descriptor = stall_descriptor_own(stall_task_open(thread.rawValue, "syscall"))
    }

    deinit { stall_descriptor_close(descriptor) }

    #if arch(x86_64)
    /// epoll_wait, epoll_pwait, io_uring_enter, epoll_pwait2.
    private static let waits = [232, 281, 426, 441]
    #else
    private static let waits = [22, 426, 441]
    #endif

    /// Whether the thread waits for events; nil if it has ended or the file cannot be read.
    var isWaiting: Bool? {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { text in
            let count = pread(descriptor, text.baseAddress, text.count, 0)
            guard count > 0 else { return nil }
            let number = text[..<count].prefix { $0 != UInt8(ascii: " ") }
            return Self.waits.contains(Int(String(decoding: number, as: UTF8.self)) ?? -1)
        }
    }
}
#endif
