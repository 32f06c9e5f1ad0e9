import CLinux
import StallModel
import Testing

@testable import StallCause

/// Goal: a sleep in a call on a file is a disk's only if a file system sleeps; all others name whom they wait for.
/// Method: states, wait channels and links as Linux 6.18 showed them of a victim of each kind.
@Suite struct FileWaitTests {
    /// A call, the thread's state, the kernel's function, and the descriptor's link and type.
    static func decide(
        _ call: String, _ state: Character, _ channel: String, _ target: String? = nil,
        type: UInt32 = 0, domain: Int32 = -1, change: (inout Wait) -> Void = { _ in }
    ) -> StallCause {
        var wait = CauseDecisionTests.wait(call, state: state)
        wait.waitChannel = channel
        if let target {
            wait.descriptors = [
                WaitedDescriptor(number: 7, target: target, peer: "", domain: domain, type: type)
            ]
        }
        change(&wait)
        return decideCause(CauseDecisionTests.facts(wait))
    }

    static let (fifo, device, block): (UInt32, UInt32, UInt32) = (0o01_0000, 0o02_0000, 0o06_0000)

    typealias Call = (call: String, channel: String, target: String, type: UInt32)
    static let callsForSomebody: [Call] = [
        ("read", "wait_woken", "/dev/ptmx", device),
        ("read", "wait_woken", "/dev/pts/ptmx", device),
        ("read", "wait_woken", "/dev/pts/0", device), ("write", "wait_woken", "/dev/pts/0", device),
        ("ioctl", "wait_woken", "/dev/pts/0", device),
        ("poll", "poll_schedule", "/dev/ptmx", device),
        ("read", "wait_woken", "/dev/ttyS0", device), ("read", "wait_woken", "/dev/tty5", device),
        ("read", "devkmsg_read", "/dev/kmsg", device),
        ("read", "evdev_read", "/dev/input/event3", device),
        ("ioctl", "binder_wait_for_work", "/dev/binder", device),
        ("read", "anon_pipe_read", "/tmp/fifo", fifo), ("poll", "poll_schedule", "/tmp/fifo", fifo),
        ("poll", "poll_schedule", "/queue", 0), ("splice", "pipe_wait_writable", "/bin/env", 0),
        ("read", "wait_woken", "/srv/container/console", 0),
    ]

    @Test(arguments: callsForSomebody)
    func `a terminal, a FIFO, a device and a queue wait for somebody`(
        call: String, channel: String, target: String, type: UInt32
    ) {
        #expect(Self.decide(call, "S", channel, target, type: type).cause == .ipc)
    }

    @Test(arguments: [
        ("open", "wait_for_partner", CauseClass.ipc), ("openat", "wait_for_partner", .ipc),
        ("openat", "__break_lease", .lock), ("truncate", "__break_lease", .lock),
        ("openat", "tty_port_block_til_ready", .ipc), ("openat", "snd_pcm_oss_open", .ipc),
        ("openat", "request_wait_answer", .disk), ("newfstatat", "fuse_get_req", .disk),
        ("openat", "rpc_wait_bit_killable", .disk), ("openat", "", .disk),
    ])
    func `an interruptible sleep with a path is a file system's only in its own functions`(
        call: String, channel: String, cause: CauseClass
    ) {
        #expect(Self.decide(call, "S", channel).cause == cause)
    }

    /// A buffer in a mapping of a cold file, of a slow FUSE file, or of a region that another process fills.
    @Test(arguments: [
        ("write", "folio_wait_bit_common", "pipe:[5]"),
        ("write", "request_wait_answer", "pipe:[5]"),
        ("sendto", "folio_wait_bit_common", "socket:[5]"),
        ("recvfrom", "handle_userfault", "socket:[5]"), ("read", "handle_userfault", "/etc/passwd"),
        ("write", "request_wait_answer", "anon_inode:[eventfd]"),
        ("futex", "request_wait_answer", ""), ("nanosleep", "request_wait_answer", ""),
        ("rt_sigtimedwait", "folio_wait_bit_common", ""),
        ("poll", "request_wait_answer", "pipe:[5]"),
        ("vmsplice", "handle_userfault", "pipe:[5]"),
    ])
    func `a page that is missing in the caller's memory is a page fault, whatever the call`(
        call: String, channel: String, target: String
    ) {
        let decided = Self.decide(call, "D", channel, target.isEmpty ? nil : target)
        #expect(decided.cause == .pageFault)
    }

    @Test(arguments: [
        ("sendfile", "folio_wait_bit_common", "socket:[5]"),
        ("poll", "request_wait_answer", "/mnt/a"),
        ("read", "folio_wait_bit_common", "/var/db"),
    ])
    func `a call that reads a file itself waits for the file`(
        call: String, channel: String, target: String
    ) {
        #expect(Self.decide(call, "D", channel, target).cause != .pageFault)
    }

    @Test func `asynchronous I/O is the disk's with a doubt`() {
        let decided = Self.decide("io_getevents", "S", "read_events")
        #expect(decided.cause == .disk && decided.confidence < 0.7)
    }

    static let callsForDisks: [Call] = [
        ("read", "folio_wait_bit_common", "/var/db", 0), ("read", "io_schedule", "/dev/vda", block),
        ("fsync", "jbd2_log_wait_commit", "/var/db", 0),
        ("read", "virtio_read", "/dev/hwrng", device),
        ("openat", "rwsem_down_write_slowpath", "", 0),
    ]

    @Test(arguments: callsForDisks)
    func `an uninterruptible sleep is the disk's`(
        call: String, channel: String, target: String, type: UInt32
    ) {
        let cause = Self.decide(call, "D", channel, target.isEmpty ? nil : target, type: type)
        #expect(cause.cause == .disk)
    }

    @Test
    func `an open that another program must permit is no disk, although it is uninterruptible`() {
        #expect(Self.decide("openat", "D", "fanotify_handle_event").cause == .ipc)
        #expect(Self.decide("openat", "D", "fanotify_get_response").cause == .ipc)
    }

    @Test(arguments: [
        ("anon_inode:inotify", CauseClass.ipc), ("anon_inode:[fanotify]", .ipc),
        ("anon_inode:[signalfd]", .ipc), ("anon_inode:[pidfd]", .ipc), ("pidfd:[5]", .unknown),
        ("anon_inode:[userfaultfd]", .ipc), ("anon_inode:[eventfd]", .ipc),
        ("anon_inode:[timerfd]", .sleep), ("anon_inode:bpf-map", .unknown),
    ])
    func `the kind of a file without a path decides`(target: String, cause: CauseClass) {
        for call in ["read", "poll"] {
            #expect(Self.decide(call, "S", "wait_woken", target).cause == cause)
        }
    }

    @Test(arguments: ["close", "dup3", "close_range"])
    func `a close waits for a lingering socket, or for a file system`(call: String) {
        #expect(Self.decide(call, "S", "wait_woken").cause == .network)
        #expect(Self.decide(call, "S", "request_wait_answer").cause == .disk)
        #expect(Self.decide(call, "D", "folio_wait_bit_common").cause == .disk)
        #expect(Self.decide(call, "S", "tty_wait_until_sent").cause == .ipc)
        #expect(Self.decide(call, "S", "").confidence <= 0.5)
    }

    @Test func `a closed number is followed no further: another file may have it by now`() {
        #expect(SystemCall.detail(ofNumber: CauseDecisionTests.number("close")) == STALL_WAIT_PLAIN)
        #expect(SystemCall.detail(ofNumber: CauseDecisionTests.number("dup3")) == STALL_WAIT_PLAIN)
    }

    @Test func `an empty epoll set with a time limit sleeps`() {
        func cause(_ call: String, _ limit: UInt64) -> CauseClass {
            Self.decide(call, "S", "do_epoll_wait", "anon_inode:[eventpoll]") {
                $0.arguments = [7, 0x1000, 1, limit, 0, 0]
            }.cause
        }
        #expect(cause("epoll_pwait", 300) == .sleep)
        #expect(cause("epoll_pwait", 0xffff_ffff) == .unknown)  // -1: for ever
        #expect(cause("epoll_pwait", .max) == .unknown)
        #expect(cause("epoll_pwait2", 0x7fff_0000_1000) == .sleep)
        #expect(cause("epoll_pwait2", 0) == .unknown)
    }

    @Test func `an io_uring waits for a disk only as far as that is known`() {
        func cause(_ operations: [UInt64]) -> CauseClass {
            Self.decide("io_uring_enter", "S", "io_cqring_wait", "anon_inode:[io_uring]") { wait in
                wait.ringOperations = operations.reduce(0) { $0 | 1 << $1 }
            }.cause
        }
        #expect(cause([27]) == .network)
        #expect(cause([22, 13]) == .network)
        #expect(cause([22]) == .ipc)
        #expect(cause([6]) == .ipc)
        #expect(cause([]) == .unknown)
    }

    @Test func `without the system call, the wait channel still tells a disk from the rest`() {
        func cause(_ channel: String, _ state: Character) -> CauseClass {
            var wait = CauseDecisionTests.wait(nil, state: state)
            wait.unreadable = .systemCall
            wait.waitChannel = channel
            return decideCause(CauseDecisionTests.facts(wait, ["read"])).cause
        }
        #expect(cause("folio_wait_bit_common", "D") == .disk)
        #expect(cause("request_wait_answer", "S") == .disk)
        #expect(cause("", "S") == .disk)
        #expect(cause("anon_pipe_read", "S") == .ipc)
        #expect(cause("__break_lease", "S") == .lock)
        #expect(cause("wait_woken", "S") == .unknown)
    }
}
