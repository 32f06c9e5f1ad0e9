// The functions on a stack refine the system call: whether a futex is a mutex, a condition or a semaphore; whether a
// poll belongs to the resolver.

/// A kind of lock, by the function that waits for it.
package enum LockKind: String, Hashable, Sendable {
    case mutex = "a mutex"
    case swiftMutex = "a Swift Mutex"
    case rwlock = "a read-write lock"
    case condition = "a condition"
    case semaphore = "a semaphore"
    case dispatchQueue = "a dispatch queue"
    case dispatchGroup = "a dispatch group"
    case once = "an initialization that another thread runs"
    /// The same in C and C++, where the word does not contain the thread that runs it.
    case initializer = "a static initialization that another thread runs"
    case threadEnd = "the end of a thread"
    case barrier = "a barrier"
    case file = "a file lock"
    /// A wait on the CPU.
    case spin = "a spin lock"
    /// SQLite retries, with a sleep in between.
    case database = "a lock of a database"
    case other = "a lock"
}

/// The conclusion from a stack.
package enum FrameHint: Equatable, Sendable {
    case lock(LockKind)
    case resolver
    /// In a libc function that reads, writes or queries files.
    case file
    case memory
    /// Waits in a run loop for the end of a child process.
    case child
    /// Waits in a run loop with a time limit.
    case timedLoop

    /// The hint of the innermost function that has one. The resolver counts anywhere on the stack.
    ///
    /// - Parameter functions: Names, innermost first.
    package init?(_ functions: [String]) {
        let names = functions.prefix(48).map(plainName)
        if names.contains(where: resolverNames.contains) {
            self = .resolver
            return
        }
        if names.prefix(12).contains(where: { $0.hasPrefix("Process.waitUntilExit()") }) {
            self = .child
            return
        }
        if names.prefix(12).contains("RunLoop.run(until:)"), names.isWaitOfLoop {
            self = .timedLoop
            return
        }
        if names.isDatabaseWait {
            self = .lock(.database)
            return
        }
        // The wait itself is at the inner end; outer functions are only reasons for it.
        for name in names.prefix(12) {
            if let kind = lockKind(name) {
                self = .lock(kind)
                return
            }
        }
        guard let innermost = names.first(where: { !$0.isEmpty }) else { return nil }
        if fileCalls.contains(innermost) {
            self = .file
        } else if memoryCalls.contains(innermost) {
            self = .memory
        } else {
            return nil
        }
    }
}

/// `__pthread_mutex_lock@@GLIBC_2.2.5` and `pthread_mutex_lock.constprop.0` as `pthread_mutex_lock`.
private func plainName(_ name: String) -> String {
    let plain = name.drop { $0 == "_" }.prefix { $0 != "@" }
    // GCC's clones of a function; Swift's names contain dots as well.
    for clone in [".constprop.", ".isra.", ".part."] {
        guard let place = plain.firstRange(of: clone) else { continue }
        return String(plain[..<place.lowerBound])
    }
    return String(plain)
}

/// Matches whole names, or a prefix that no app uses: an app may have a function of its own named
/// `dispatch_sync_orders`.
private func lockKind(_ name: String) -> LockKind? {
    if let kind = locks[name] { return kind }
    // POSIX reserves the prefix.
    if name.hasPrefix("pthread_rwlock_") { return .rwlock }
    if name.hasPrefix("pthread_mutex_") && name.contains("lock") { return .mutex }
    if name.hasPrefix("swift::threading_impl::once_slow") { return .once }
    if name.contains("MutexHandle") { return .swiftMutex }
    return nil
}

extension [String] {
    /// The innermost function waits for events of a CFRunLoop.
    fileprivate var isWaitOfLoop: Bool {
        first.map { ["poll", "ppoll", "epoll_wait", "select", "GI_ppoll", "GI_poll"].contains($0) }
            == true
            && prefix(4).contains { $0.hasPrefix("CFRunLoopServiceFileDescriptors") }
    }

    /// A sleep called by SQLite: between the two are only SQLite's functions, most of them without names.
    fileprivate var isDatabaseWait: Bool {
        let sleeps = prefix {
            ["usleep", "nanosleep", "clock_nanosleep", "GI_clock_nanosleep", "GI_nanosleep"]
                .contains($0)
        }
        guard !sleeps.isEmpty else { return false }
        let caller = dropFirst(sleeps.count).first { !$0.isEmpty }
        return caller.map { $0.hasPrefix("sqlite") || databaseCalls.contains($0) } ?? false
    }
}

private let databaseCalls: Set<String> = [
    "unixSleep", "btreeInvokeBusyHandler", "walBusyLock", "walTryBeginRead",
]

private let locks: [String: LockKind] = [
    "lll_lock_wait": .mutex, "lll_lock_wait_private": .mutex, "lll_mutex_lock_optimized": .mutex,
    "mtx_lock": .mutex, "flockfile": .mutex,
    "dispatch_sync": .dispatchQueue, "dispatch_sync_f": .dispatchQueue,
    "dispatch_sync_f_slow": .dispatchQueue, "dispatch_sync_wait": .dispatchQueue,
    "dispatch_sync_block_with_privdata": .dispatchQueue,
    "dispatch_barrier_sync": .dispatchQueue, "dispatch_barrier_sync_f": .dispatchQueue,
    "dispatch_barrier_sync_f_slow": .dispatchQueue, "dispatch_async_and_wait": .dispatchQueue,
    "dispatch_async_and_wait_f": .dispatchQueue, "dispatch_async_and_wait_f_slow": .dispatchQueue,
    "dispatch_barrier_async_and_wait": .dispatchQueue, "DISPATCH_WAIT_FOR_QUEUE__": .dispatchQueue,
    "dispatch_semaphore_wait": .semaphore, "dispatch_semaphore_wait_slow": .semaphore,
    "dispatch_group_wait": .dispatchGroup, "dispatch_group_wait_slow": .dispatchGroup,
    "pthread_cond_wait": .condition, "pthread_cond_timedwait": .condition,
    "pthread_cond_clockwait": .condition, "cnd_wait": .condition, "cnd_timedwait": .condition,
    "sem_wait": .semaphore, "sem_timedwait": .semaphore, "sem_clockwait": .semaphore,
    "new_sem_wait": .semaphore, "new_sem_wait_slow64": .semaphore,
    "pthread_join": .threadEnd, "pthread_timedjoin_np": .threadEnd,
    "pthread_clockjoin_np": .threadEnd, "pthread_clockjoin_ex": .threadEnd,
    "pthread_barrier_wait": .barrier,
    "pthread_spin_lock": .spin,
    "dispatch_once_wait": .once, "swift_once": .once,
    "pthread_once": .initializer, "pthread_once_slow": .initializer, "call_once": .initializer,
    "cxa_guard_acquire": .initializer,
]

private let resolverNames: Set<String> = [
    "getaddrinfo", "gethostbyname", "gethostbyname2", "gethostbyname_r", "gethostbyname2_r",
    "gethostbyaddr", "gethostbyaddr_r", "getnameinfo", "res_query", "res_search", "res_send",
    "res_nquery", "res_nsearch", "res_nsend", "getaddrinfo_a", "gai_suspend",
]

private let fileCalls: Set<String> = [
    "write", "libc_write", "read", "libc_read", "pread", "pread64", "libc_pread", "libc_pread64",
    "pwrite", "pwrite64", "libc_pwrite", "libc_pwrite64", "readv", "writev", "preadv", "pwritev",
    "preadv64", "pwritev64", "fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync",
    "open", "open64", "openat", "openat64", "libc_open", "libc_open64", "libc_openat64", "stat",
    "stat64", "lstat", "lstat64", "fstat", "fstat64", "fstatat", "fstatat64", "statx", "access",
    "faccessat", "getdents64", "readdir", "readdir64", "ftruncate", "ftruncate64", "truncate",
    "fallocate", "fallocate64", "rename", "renameat", "renameat2", "unlink", "unlinkat", "link",
    "symlink", "mkdir", "rmdir", "readlink", "copy_file_range", "sendfile", "sendfile64",
]

private let memoryCalls: Set<String> = ["munmap", "madvise", "mlock", "mlockall", "mprotect"]
