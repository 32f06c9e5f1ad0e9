// The system calls that a thread can wait in, by number. Other calls are no evidence of a cause.

/// The kind of a wait in a system call, and which argument names its object.
package enum CallKind: Hashable, Sendable {
    /// A file or directory, regardless of the arguments.
    case file
    /// The target of the descriptor in the first argument.
    case descriptor
    /// The socket in the first argument.
    case socket
    /// The descriptors in the array that the first argument points to.
    case poll
    /// The descriptors that an epoll descriptor watches, which only the kernel knows.
    case epoll
    case futex
    case sleep
    /// The end of a child process.
    case child
    /// Messages and semaphores between processes.
    case exchange
    /// A lock on the file of the descriptor in the first argument. `fcntl` waits for nothing else.
    case fileLock
    case signal
    case memory
    case yield
    /// Anything that was submitted to an io_uring.
    case ring
    /// The last use of a file or a socket, whose number is free again and may already be another one's.
    case close
}

/// A system call of the target architecture.
package struct SystemCall: Equatable, Sendable {
    package let name: String
    package let kind: CallKind

    /// Nil for a number that is not in the table.
    package init?(number: Int32) {
        guard let call = Self.byNumber[number] else { return nil }
        self = call
    }

    private init(name: String, kind: CallKind) {
        self.name = name
        self.kind = kind
    }

    #if arch(arm64)
    private static let byNumber = numbered { $0.arm64 }
    #else
    private static let byNumber = numbered { $0.x86_64 }
    #endif

    private static func numbered(_ number: (Row) -> Int32?) -> [Int32: SystemCall] {
        table.reduce(into: [:]) { calls, row in
            guard let number = number(row) else { return }
            calls[number] = SystemCall(name: row.name, kind: row.kind)
        }
    }

    package typealias Row = (name: String, x86_64: Int32?, arm64: Int32?, kind: CallKind)

    /// **Source:** the kernel's asm/unistd_64.h and asm-generic/unistd.h; checked by a test.
    package static let table: [Row] = [
        ("open", 2, nil, .file),
        ("openat", 257, 56, .file),
        ("openat2", 437, 437, .file),
        ("creat", 85, nil, .file),
        ("stat", 4, nil, .file),
        ("fstat", 5, 80, .file),
        ("lstat", 6, nil, .file),
        ("newfstatat", 262, 79, .file),
        ("statx", 332, 291, .file),
        ("access", 21, nil, .file),
        ("faccessat", 269, 48, .file),
        ("faccessat2", 439, 439, .file),
        ("getdents", 78, nil, .file),
        ("getdents64", 217, 61, .file),
        ("fsync", 74, 82, .file),
        ("fdatasync", 75, 83, .file),
        ("sync", 162, 81, .file),
        ("syncfs", 306, 267, .file),
        ("sync_file_range", 277, 84, .file),
        ("truncate", 76, 45, .file),
        ("ftruncate", 77, 46, .file),
        ("fallocate", 285, 47, .file),
        ("rename", 82, nil, .file),
        ("renameat", 264, 38, .file),
        ("renameat2", 316, 276, .file),
        ("unlink", 87, nil, .file),
        ("unlinkat", 263, 35, .file),
        ("link", 86, nil, .file),
        ("linkat", 265, 37, .file),
        ("symlink", 88, nil, .file),
        ("symlinkat", 266, 36, .file),
        ("readlink", 89, nil, .file),
        ("readlinkat", 267, 78, .file),
        ("mkdir", 83, nil, .file),
        ("mkdirat", 258, 34, .file),
        ("rmdir", 84, nil, .file),
        ("chmod", 90, nil, .file),
        ("fchmod", 91, 52, .file),
        ("fchmodat", 268, 53, .file),
        ("chown", 92, nil, .file),
        ("fchown", 93, 55, .file),
        ("fchownat", 260, 54, .file),
        ("lchown", 94, nil, .file),
        ("utimensat", 280, 88, .file),
        ("statfs", 137, 43, .file),
        ("fstatfs", 138, 44, .file),
        ("pread64", 17, 67, .file),
        ("pwrite64", 18, 68, .file),
        ("preadv", 295, 69, .file),
        ("pwritev", 296, 70, .file),
        ("preadv2", 327, 286, .file),
        ("pwritev2", 328, 287, .file),
        ("readahead", 187, 213, .file),
        ("fadvise64", 221, 223, .file),
        ("copy_file_range", 326, 285, .file),
        ("getxattr", 191, 8, .file),
        ("setxattr", 188, 5, .file),
        ("lgetxattr", 192, 9, .file),
        ("fgetxattr", 193, 10, .file),
        ("fsetxattr", 190, 7, .file),
        ("listxattr", 194, 11, .file),
        ("msync", 26, 227, .file),
        ("mount", 165, 40, .file),
        ("umount2", 166, 39, .file),
        ("execve", 59, 221, .file),
        ("io_getevents", 208, 4, .file),
        ("io_submit", 209, 2, .file),
        ("chdir", 80, 49, .file),
        ("getcwd", 79, 17, .file),
        ("close", 3, 57, .close),
        ("close_range", 436, 436, .close),
        ("dup2", 33, nil, .close),
        ("dup3", 292, 24, .close),
        ("read", 0, 63, .descriptor),
        ("readv", 19, 65, .descriptor),
        ("write", 1, 64, .descriptor),
        ("writev", 20, 66, .descriptor),
        ("ioctl", 16, 29, .descriptor),
        ("sendfile", 40, 71, .descriptor),
        ("splice", 275, 76, .descriptor),
        ("tee", 276, 77, .descriptor),
        ("vmsplice", 278, 75, .descriptor),
        ("lseek", 8, 62, .descriptor),
        ("connect", 42, 203, .socket),
        ("accept", 43, 202, .socket),
        ("accept4", 288, 242, .socket),
        ("recvfrom", 45, 207, .socket),
        ("recvmsg", 47, 212, .socket),
        ("recvmmsg", 299, 243, .socket),
        ("sendto", 44, 206, .socket),
        ("sendmsg", 46, 211, .socket),
        ("sendmmsg", 307, 269, .socket),
        ("shutdown", 48, 210, .socket),
        ("poll", 7, nil, .poll),
        ("ppoll", 271, 73, .poll),
        ("select", 23, nil, .poll),
        ("pselect6", 270, 72, .poll),
        ("epoll_wait", 232, nil, .epoll),
        ("epoll_pwait", 281, 22, .epoll),
        ("epoll_pwait2", 441, 441, .epoll),
        ("futex", 202, 98, .futex),
        ("futex_waitv", 449, 449, .futex),
        ("nanosleep", 35, 101, .sleep),
        ("clock_nanosleep", 230, 115, .sleep),
        ("wait4", 61, 260, .child),
        ("waitid", 247, 95, .child),
        ("vfork", 58, nil, .child),
        ("clone", 56, 220, .child),
        ("clone3", 435, 435, .child),
        ("msgrcv", 70, 188, .exchange),
        ("msgsnd", 69, 189, .exchange),
        ("semop", 65, 193, .exchange),
        ("semtimedop", 220, 192, .exchange),
        ("mq_timedreceive", 243, 183, .exchange),
        ("mq_timedsend", 242, 182, .exchange),
        ("flock", 73, 32, .fileLock),
        ("fcntl", 72, 25, .fileLock),
        ("pause", 34, nil, .signal),
        ("rt_sigsuspend", 130, 133, .signal),
        ("rt_sigtimedwait", 128, 137, .signal),
        ("signalfd4", 289, 74, .signal),
        ("mmap", 9, 222, .memory),
        ("munmap", 11, 215, .memory),
        ("mremap", 25, 216, .memory),
        ("mprotect", 10, 226, .memory),
        ("madvise", 28, 233, .memory),
        ("mlock", 149, 228, .memory),
        ("mlock2", 325, 284, .memory),
        ("mlockall", 151, 230, .memory),
        ("brk", 12, 214, .memory),
        ("process_madvise", 440, 440, .memory),
        ("move_pages", 279, 239, .memory),
        ("mbind", 237, 235, .memory),
        ("sched_yield", 24, 124, .yield),
        ("io_uring_enter", 426, 426, .ring),
    ]
}
