// Reads which system call a thread is in, to poll a loop whose waits are not intercepted.

#if NIO
internal import CLinux
internal import StallModel

/// The file `/proc/self/task/TID/syscall`, opened once.
final class SystemCallFile: Sendable {
    private let descriptor: Int32

    init(_ thread: ThreadID) {
        descriptor = stall_descriptor_own(stall_task_open(thread.rawValue, "syscall"))
    }

    deinit { stall_descriptor_close(descriptor) }

    /// Whether the thread waits for events; nil if it has ended or the file cannot be read.
    var isWaiting: Bool? {
        let answer = stall_task_file_shows_wait(descriptor)
        return answer < 0 ? nil : answer == 1
    }
}
#endif
