// Reads a stalled thread's state on the watchdog's thread. Takes no lock and disturbs no thread; the stalled thread may
// hold any lock of the app.

package import CLinux
internal import Glibc
package import StallModel

/// Reads the evidence of one thread. Opened when the thread is first suspected.
package struct ThreadStateReader: ~Copyable {
    package let thread: ThreadID
    private var files = stall_thread_files()

    /// - Parameter shared: The thread's files that are already open.
    package init(
        _ thread: ThreadID, sharing shared: UnsafeMutablePointer<stall_thread_files>? = nil
    ) {
        self.thread = thread
        if let shared {
            stall_thread_files_share(&files, shared, thread.rawValue)
        } else {
            stall_thread_files_open(&files, thread.rawValue, 0)
        }
    }

    deinit {
        var files = files
        stall_thread_files_close(&files)
    }

    /// The thread's wait now, and its counters. Allocates.
    package mutating func snapshot() -> (wait: Wait, counters: Counters) {
        let scratch = WaitSnapshot()
        snapshot(into: scratch)
        stall_wait_find_file_lock(scratch.pointer, thread.rawValue)
        return (Wait(scratch.copy), Counters(scratch.copy.snapshot.thread))
    }

    /// The same as plain memory, without the holder of a file lock. Neither allocates nor waits.
    package mutating func snapshot(into snapshot: WaitSnapshot) {
        stall_evidence_read(&files, &snapshot.pointer.pointee.thread)
        let detail = SystemCall.detail(ofNumber: snapshot.pointer.pointee.thread.system_call)
        stall_wait_follow(snapshot.pointer, detail, snapshot.descriptors)
        guard snapshot.isOfFutex else { return }
        snapshot.pointer.pointee.drainer = stall_queue_find_sync_holder(
            snapshot.pointer.pointee.thread.arguments.0, thread.rawValue)
    }
}

/// Reusable memory for a thread's state.
package final class WaitSnapshot {
    let pointer = UnsafeMutablePointer<stall_wait_snapshot>.allocate(capacity: 1)
    let descriptors = UnsafeMutablePointer<stall_descriptor_snapshot>.allocate(
        capacity: Int(STALL_WAIT_DESCRIPTORS))

    package init() {
        pointer.initialize(to: stall_wait_snapshot())
        pointer.pointee.thread.system_call = -1
        descriptors.initialize(
            repeating: stall_descriptor_snapshot(), count: Int(STALL_WAIT_DESCRIPTORS))
    }

    deinit {
        pointer.deallocate()
        descriptors.deallocate()
    }

    package func clear() {
        pointer.pointee = stall_wait_snapshot()
        pointer.pointee.thread.system_call = -1
    }

    var isOfFutex: Bool { pointer.pointee.detail == STALL_WAIT_FUTEX }

    /// The current content.
    package var copy: WaitCopy {
        WaitCopy(
            snapshot: pointer.pointee,
            descriptors: UnsafeBufferPointer(
                start: descriptors, count: Int(pointer.pointee.descriptor_count)))
    }
}

/// A thread's state in the caller's memory.
package struct WaitCopy {
    package let snapshot: stall_wait_snapshot
    package let descriptors: UnsafeBufferPointer<stall_descriptor_snapshot>

    package init(
        snapshot: stall_wait_snapshot, descriptors: UnsafeBufferPointer<stall_descriptor_snapshot>
    ) {
        self.snapshot = snapshot
        self.descriptors = descriptors
    }
}

extension Counters {
    /// The counters of a thread's state.
    package init(_ snapshot: stall_thread_snapshot) {
        self.init()
        cpuTime = .nanoseconds(snapshot.cpu_ns)
        runDelay = .nanoseconds(snapshot.run_delay_ns)
        minorFaults = snapshot.minor_faults
        majorFaults = snapshot.major_faults
        waits = snapshot.waits
        preemptions = snapshot.preemptions
    }

    /// Adds the process's counters; returns what could not be read.
    package mutating func add(_ snapshot: ProcessSnapshot) -> UnreadableFacts {
        processTime = .nanoseconds(snapshot.process.cpu_ns)
        throttled = snapshot.throttling?.time ?? .zero
        throttleCount = UInt64(max(0, snapshot.throttling?.count ?? 0))
        pressure = [
            .microseconds(snapshot.process.pressure_us.0),
            .microseconds(snapshot.process.pressure_us.1),
            .microseconds(snapshot.process.pressure_us.2),
        ]
        var unreadable = UnreadableFacts(rawValue: snapshot.process.unreadable)
        if snapshot.throttling == nil { unreadable.insert(.controlGroup) }
        return unreadable
    }
}

/// The counters of the process and its control groups. Plain memory.
package struct ProcessSnapshot: Sendable {
    var process = stall_process_snapshot()
    var throttling: ControlGroup.Throttling?

    package init() {}
}

/// Reads the evidence of the process, which all threads share. Keeps no descriptor.
package struct ProcessStateReader {
    private let controlGroup: ControlGroup

    package init(_ controlGroup: ControlGroup) { self.controlGroup = controlGroup }

    /// Reads the counters. Does not allocate.
    package func read() -> ProcessSnapshot {
        var snapshot = ProcessSnapshot()
        stall_process_read(&snapshot.process)
        snapshot.throttling = controlGroup.throttling()
        return snapshot
    }

    /// Adds the process's counters; returns what could not be read.
    package func snapshot(_ counters: inout Counters) -> UnreadableFacts { counters.add(read()) }
}

extension Wait {
    /// Decodes a thread's state.
    package init(_ copy: WaitCopy) {
        self.init()
        let snapshot = copy.snapshot.thread
        isRunning = snapshot.is_running
        state = snapshot.state == 0 ? UInt8(ascii: "?") : snapshot.state
        systemCall = snapshot.system_call >= 0 ? snapshot.system_call : nil
        unreadable = UnreadableFacts(rawValue: snapshot.unreadable)
        waitChannel = withUnsafeBytes(of: snapshot.wait_channel) { Self.text($0) }
        guard systemCall != nil else { return }
        arguments = withUnsafeBytes(of: snapshot.arguments) {
            Array($0.bindMemory(to: UInt64.self))
        }
        descriptors = copy.descriptors.map { snapshot in
            WaitedDescriptor(
                number: snapshot.number,
                target: withUnsafeBytes(of: snapshot.target) { Self.text($0) },
                peer: withUnsafeBytes(of: snapshot.peer) { Self.text($0) },
                domain: snapshot.socket_domain, type: snapshot.type)
        }
        ringOperations = copy.snapshot.ring_operations
        if copy.snapshot.detail == STALL_WAIT_FUTEX { decodeFutex(copy.snapshot) }
        guard copy.snapshot.lock_process > 0 else { return }
        let name = withUnsafeBytes(of: copy.snapshot.lock_process_name) { Self.text($0) }
        let holder = HoldingProcess(
            process: copy.snapshot.lock_process, name: name.isEmpty ? nil : name)
        if copy.snapshot.detail == STALL_WAIT_SLEEP {
            databaseLockHolder = holder
        } else {
            fileLockHolder = holder
        }
    }

    private mutating func decodeFutex(_ snapshot: stall_wait_snapshot) {
        let operation = UInt32(truncatingIfNeeded: arguments[1])
        let words = withUnsafeBytes(of: snapshot.futex_words) {
            Array($0.bindMemory(to: UInt32.self).prefix(Int(snapshot.futex_word_count)))
        }
        futex = WaitedFutex(
            address: arguments[0], operation: operation & 127, words: words,
            drainer: snapshot.drainer > 0 ? ThreadID(rawValue: snapshot.drainer) : nil)
        guard snapshot.has_limit else { return }
        let time = Duration.seconds(snapshot.limit_s) + .nanoseconds(snapshot.limit_ns)
        let now = MonotonicInstant(nanoseconds: snapshot.at_ns)
        if operation & 127 == 0 {
            // Relative to the call's start, which is unknown: this is the latest possible deadline.
            deadline = now + time
        } else if operation & 256 != 0 {
            deadline = now + (time - .microseconds(snapshot.unix_us))
        } else {
            deadline = MonotonicInstant(nanoseconds: UInt64(max(0, time.nanoseconds)))
        }
    }

    static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
}

extension WaitedDescriptor {
    /// Classifies a descriptor by its link in `/proc/self/fd`, without accessing the file.
    ///
    /// - Parameter type: `S_IFIFO`, or the type of a file in `/dev`; 0 of all others.
    package init(number: Int32, target: String, peer: String, domain: Int32, type: UInt32 = 0) {
        let isInternet = domain == AF_INET || domain == AF_INET6
        let kind: DescriptorKind =
            if target.hasPrefix("socket:") {
                isInternet ? .networkSocket : .localSocket
            } else if target.hasPrefix("pipe:") || type == S_IFIFO {
                .pipe
            } else if target.hasPrefix("anon_inode:") {
                Self.anonymous[String(target.dropFirst(11).filter { !"[]".contains($0) })] ?? .other
            } else if target.hasPrefix("/dev/pts/") || target.hasPrefix("/dev/tty")
                || target == "/dev/ptmx"
            {
                .terminal
            } else if target.hasPrefix("/memfd:") || target.hasPrefix("/dev/shm/") {
                .memory
            } else if type == S_IFCHR {
                target.hasPrefix("/dev/net/") ? .networkDevice : .device
            } else if Self.isMadeByKernel(target) {
                .other
            } else {
                target.hasPrefix("/") ? .file : .other
            }
        self.init(
            number: number, kind: kind,
            target: isInternet ? (peer.isEmpty ? "internet socket" : peer) : target)
    }

    /// The kernel's names of files without a path; some have brackets.
    private static let anonymous: [String: DescriptorKind] = [
        "eventfd": .event, "timerfd": .timer, "eventpoll": .epoll, "pidfd": .process,
        "inotify": .notification, "fanotify": .notification, "signalfd": .notification,
        "userfaultfd": .notification, "perf_event": .notification, "seccomp notify": .notification,
    ]

    /// Whether the path is not on a disk.
    private static func isMadeByKernel(_ path: String) -> Bool {
        path.hasPrefix("/proc/") || path.hasPrefix("/sys/")
    }
}

extension SystemCall {
    /// Whether the call's first argument is a descriptor of the file.
    var takesDescriptor: Bool {
        Self.descriptorCalls.contains(name)
    }

    private static let descriptorCalls: Set<String> = [
        "fsync", "fdatasync", "sync_file_range", "ftruncate", "fallocate", "getdents",
        "getdents64", "fstat", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2",
        "readahead", "syncfs", "fstatfs", "fadvise64",
    ]
}

extension SystemCall {
    /// The kind of a wait in the call with this number. Does not allocate after `prepare`.
    static func detail(ofNumber number: Int32) -> stall_wait_detail {
        number >= 0 && Int(number) < details.count ? details[Int(number)] : STALL_WAIT_PLAIN
    }

    /// Creates the tables in advance.
    package static func prepare() { _ = details.count }

    private static let details: [stall_wait_detail] = (0..<512).map { number in
        guard let call = SystemCall(number: Int32(number)) else { return STALL_WAIT_PLAIN }
        switch call.kind {
        case .descriptor, .socket, .epoll: return STALL_WAIT_DESCRIPTOR
        case .file: return call.takesDescriptor ? STALL_WAIT_DESCRIPTOR : STALL_WAIT_PLAIN
        case .poll:
            let isSelect = call.name == "select" || call.name == "pselect6"
            return isSelect ? STALL_WAIT_SELECT : STALL_WAIT_POLL
        case .futex: return STALL_WAIT_FUTEX
        case .fileLock: return STALL_WAIT_FILE_LOCK
        case .sleep: return STALL_WAIT_SLEEP
        case .ring: return STALL_WAIT_RING
        case .child, .close, .exchange, .signal, .memory, .yield: return STALL_WAIT_PLAIN
        }
    }
}
