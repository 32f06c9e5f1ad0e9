// The names that classify frames. Matching is on the bare name: leading underscores and the marks of libc's internal
// variants are gone, so that `__GI___poll`, `__poll` and `poll` are one entry.

/// What a thread waits for, as far as function names tell.
package enum WaitClass: String, Hashable, Sendable {
    case sleep, lock, disk, network, ipc, io
    /// For any of several descriptors.
    case poll
}

enum FrameTables {
    static func plainName(_ name: String) -> String {
        var name = name[...]
        for prefix in ["__GI_", "__libc_", "__new_", "__old_"] where name.hasPrefix(prefix) {
            name = name.dropFirst(prefix.count)
        }
        name = name.drop { $0 == "_" }
        for suffix in ["_nocancel", "_time64", "_internal"] where name.hasSuffix(suffix) {
            name = name.dropLast(suffix.count)
        }
        return String(name)
    }

    static let waits: [String: WaitClass] = {
        let names: [WaitClass: String] = [
            .sleep: "sleep usleep nanosleep clock_nanosleep pause sleep_until",
            .lock: """
            lll_lock_wait lll_lock_wait_private lll_lock_elision pthread_mutex_lock pthread_mutex_lock_full \
            pthread_mutex_timedlock pthread_mutex_clocklock pthread_mutex_cond_lock pthread_rwlock_rdlock \
            pthread_rwlock_wrlock pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock \
            pthread_rwlock_rdlock_full64 pthread_rwlock_wrlock_full64 pthread_spin_lock \
            pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait pthread_cond_wait_common \
            futex_wait futex_lock_pi64 futex_abstimed_wait64 futex_abstimed_wait_cancelable64 \
            futex_abstimed_wait_common futex_abstimed_wait_common64 \
            sem_wait sem_timedwait sem_clockwait new_sem_wait new_sem_wait_slow64 \
            pthread_join pthread_timedjoin_np pthread_clockjoin_ex pthread_once_slow pthread_once \
            pthread_barrier_wait cnd_wait mtx_lock call_once flockfile \
            dispatch_semaphore_wait dispatch_semaphore_wait_slow dispatch_sema4_wait \
            dispatch_sema4_timedwait dispatch_group_wait dispatch_group_wait_slow \
            dispatch_sync dispatch_sync_f dispatch_sync_f_slow dispatch_sync_wait \
            dispatch_barrier_sync dispatch_barrier_sync_f dispatch_async_and_wait \
            DISPATCH_WAIT_FOR_QUEUE__ dispatch_thread_event_wait_slow dispatch_block_wait \
            dispatch_once_wait dispatch_unfair_lock_lock_slow dispatch_futex_wait \
            dispatch_event_loop_wait_for_ownership
            """,
            .disk: """
            fsync fdatasync sync syncfs sync_file_range msync open open64 openat openat64 creat fopen fopen64 \
            stat stat64 lstat lstat64 fstat fstat64 fstatat fstatat64 statx access faccessat \
            unlink unlinkat rename renameat renameat2 mkdir rmdir link symlink readlink truncate ftruncate \
            ftruncate64 fallocate fallocate64 posix_fallocate posix_fallocate64 getdents getdents64 readdir \
            readdir64 opendir flock lockf lockf64 pread pread64 pwrite pwrite64 preadv pwritev \
            copy_file_range fclose fflush
            """,
            .network: """
            connect accept accept4 recv recvfrom recvmsg recvmmsg send sendto sendmsg sendmmsg \
            getaddrinfo gethostbyname gethostbyname_r gethostbyname2_r gethostbyaddr_r getnameinfo \
            res_nsend res_context_send res_query res_search res_nquery
            """,
            .ipc:
                "waitpid wait4 waitid wait3 wait msgrcv msgsnd semop semtimedop mq_receive mq_timedreceive",
            .io:
                "read write readv writev sendfile sendfile64 splice tee vmsplice ioctl fcntl fcntl64 io_uring_enter",
            .poll: """
            poll ppoll epoll_wait epoll_pwait epoll_pwait2 select pselect pselect64 sigtimedwait sigwait \
            sigwaitinfo sigsuspend
            """,
        ]
        return names.reduce(into: [:]) { table, entry in
            for name in entry.value.split(separator: " ") {
                table[plainName(String(name))] = entry.key
            }
        }
    }()

    /// `main`; SwiftPM calls it `photos_main` in the executable `photos`.
    static func isEntryPoint(_ name: String, image: String) -> Bool {
        guard name.hasSuffix("main") else { return false }
        let module = image.utf8.map { $0.isIdentifier ? $0 : UInt8(ascii: "_") }
        return name == "main" || name == String(decoding: module, as: UTF8.self) + "_main"
    }

    /// Where threads and programs begin.
    static let bases: Set<String> = [
        "_start", "start_thread", "clone", "clone3", "thread_start", "libc_start_main",
        "libc_start_call_main", "start_main", "libc_start_main_impl",
        "execute_native_thread_routine",
        "async_Main", "completeTaskWithClosure", "completeTaskAndRelease", "NSThreadStart",
        "pthread_start", "_pthread_start",
    ]

    /// What takes one callout after the other. The bare name begins with one of these.
    static let loops = [
        "CFRunLoopRun", "dispatch_main_queue_drain", "dispatch_main_queue_callback",
        "dispatch_root_queue_drain",
        "dispatch_worker_thread", "dispatch_lane_serial_drain", "dispatch_lane_invoke",
        "dispatch_lane_concurrent_drain",
        "dispatch_main", "swift_task_asyncMainDrainQueue", "UIApplicationMain", "NSApplicationMain",
        "GSEventRun", "g_main_loop_run", "g_main_context_iteration", "uv_run", "event_base_loop",
        "ev_run",
        "g_application_run",
    ]

    static let dispatchPrefixes = [
        "_dispatch_", "dispatch_", "CFRunLoop", "__CFRunLoop", "__CFRUNLOOP_IS_", "_CFRunLoop",
        "CF",
        "__CF", "_CF",
    ]

    static let allocators: Set<String> = [
        "malloc", "calloc", "realloc", "free", "cfree", "aligned_alloc", "posix_memalign",
        "memalign", "int_malloc",
        "int_free", "int_realloc", "int_memalign", "sysmalloc", "systrim", "malloc_consolidate",
        "unlink_chunk",
        "tcache_init", "morecore", "brk", "sbrk", "mmap", "mmap64", "munmap", "mremap", "madvise",
        "malloc_usable_size",
        "memcpy", "memmove", "memset", "memcmp", "bzero", "bcopy", "memchr",
    ]

    static let allocatorPrefixes = [
        "operator new", "operator delete", "__memcpy_", "__memmove_", "__memset_", "__memcmp_",
    ]

    /// C and C++ of the toolchain, which is in the app's image when it is linked statically.
    static let runtimePrefixes = ["swift::", "__swift::", "swift_", "_Block_", "__cxxabiv1::"]
    static let systemPrefixes = [
        "std::", "__gnu_cxx::", "icu_", "llvm::", "OSAtomic", "_NS", "voucher_", "uuid_",
    ]
    /// Types in the parameters of functions that are static in ICU.
    static let systemTypes = ["icu_7", "UErrorCode", "UConverter", "decNumber", "UCharIterator"]

    static let agentModules: Set<String> = [
        "StallAgent", "StallDetection", "StallCapture", "StallSymbols", "StallStore", "StallModel",
        "StallCause", "StallAnalysis",
    ]

    /// Modules of the toolchain. Statically linked they are in the app's image.
    static let systemModules: Set<String> = [
        "Swift", "_Concurrency", "_StringProcessing", "_RegexParser", "RegexBuilder",
        "Synchronization",
        "Observation", "Distributed", "_Differentiation", "_Volatile", "_Builtin_float", "Cxx",
        "CxxStdlib",
        "SwiftOnoneSupport", "Runtime", "Glibc", "Musl", "SwiftGlibc", "Dispatch", "Foundation",
        "FoundationEssentials", "FoundationInternationalization", "FoundationNetworking",
        "FoundationXML",
        "_FoundationCollections", "CoreFoundation", "__C", "XCTest", "Testing",
        "_Testing_Foundation",
    ]

    static func isSystemImage(_ path: String) -> Bool {
        let directories = [
            "/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/", "/System/",
        ]
        if directories.contains(where: { path.hasPrefix($0) }) { return true }
        let name = path.split(separator: "/").last.map(String.init) ?? path
        let toolchain = [
            "libswift", "lib_Swift", "libFoundation", "lib_Foundation", "libdispatch.",
            "libBlocksRuntime.",
            "libXCTest.", "libTesting.", "lib_Testing", "lib_InternalSwift", "libc.so.",
            "libpthread.so.",
            "libstdc++.so.", "libgcc_s.so.", "libm.so.", "ld-linux", "libc++.so", "ld-musl",
        ]
        return toolchain.contains { name.hasPrefix($0) }
    }
}
