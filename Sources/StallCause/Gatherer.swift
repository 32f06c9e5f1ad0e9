// Looks at a stalled thread on the watchdog's thread, through files that are kept open. Takes no lock and disturbs
// nobody; the stalled thread may hold any lock of the app.

internal import CLinux
internal import Glibc
package import StallModel

/// The evidence of one thread. Opened when a thread is first suspected, and kept.
package struct ThreadGatherer: ~Copyable {
    package let thread: ThreadID
    private var files: stall_evidence_files

    package init(_ thread: ThreadID) {
        self.thread = thread
        files = stall_evidence_files()
        stall_evidence_open(&files, thread.rawValue)
    }

    deinit {
        var files = files
        stall_evidence_close(&files)
    }

    /// What the thread waits for now, and its counters.
    package func look() -> (wait: Wait, counters: Counters) {
        var look = stall_thread_look()
        withUnsafePointer(to: files) { stall_evidence_look($0, &look) }
        var counters = Counters()
        counters.cpuTime = .nanoseconds(look.cpu_ns)
        counters.runDelay = .nanoseconds(look.run_delay_ns)
        counters.minorFaults = look.minor_faults
        counters.majorFaults = look.major_faults
        counters.waits = look.waits
        counters.preemptions = look.preemptions
        return (Wait(look), counters)
    }
}

/// The evidence of the process, one for all threads.
package struct ProcessGatherer: ~Copyable {
    private var files = stall_process_files()
    private let controlGroup: ControlGroup

    package init(_ controlGroup: ControlGroup) {
        self.controlGroup = controlGroup
        stall_process_open(&files)
    }

    deinit {
        var files = files
        stall_process_close(&files)
    }

    /// Adds the process's counters; returns what could not be read.
    package func look(_ counters: inout Counters) -> UnreadableFacts {
        var look = stall_process_look()
        withUnsafePointer(to: files) { stall_process_look_at($0, &look) }
        counters.processTime = .nanoseconds(look.cpu_ns)
        let throttling = controlGroup.throttling()
        counters.throttled = throttling?.time ?? .zero
        counters.throttleCount = UInt64(max(0, throttling?.count ?? 0))
        counters.pressure = [
            .microseconds(look.pressure_us.0), .microseconds(look.pressure_us.1),
            .microseconds(look.pressure_us.2),
        ]
        var unreadable = UnreadableFacts(rawValue: look.unreadable)
        if throttling == nil { unreadable.insert(.controlGroup) }
        return unreadable
    }
}

extension Wait {
    fileprivate init(_ look: stall_thread_look) {
        self.init()
        isRunning = look.is_running
        state = look.state == 0 ? UInt8(ascii: "?") : look.state
        systemCall = look.system_call >= 0 ? look.system_call : nil
        unreadable = UnreadableFacts(rawValue: look.unreadable)
        waitChannel = withUnsafeBytes(of: look.wait_channel) { Self.text($0) }
        guard systemCall != nil else { return }
        arguments = withUnsafeBytes(of: look.arguments) { Array($0.bindMemory(to: UInt64.self)) }
        guard let kind = call?.kind else { return }
        decode(kind)
    }

    private mutating func decode(_ kind: CallKind) {
        switch kind {
        case .descriptor, .socket, .epoll: describe([Int32(truncatingIfNeeded: arguments[0])])
        case .file where call?.takesDescriptor == true:
            describe([Int32(truncatingIfNeeded: arguments[0])])
        case .poll: describe(polledDescriptors())
        case .futex: readFutex()
        case .fileLock:
            describe([Int32(truncatingIfNeeded: arguments[0])])
            fileLockHolder = Self.fileLockHolder()
        case .sleep, .file, .child, .exchange, .signal, .memory, .yield, .ring: break
        }
    }

    private mutating func describe(_ numbers: [Int32]) {
        descriptors = numbers.compactMap { number in
            var look = stall_descriptor_look()
            guard stall_descriptor_look_at(number, &look) else { return nil }
            let target = withUnsafeBytes(of: look.target) { Self.text($0) }
            let peer = withUnsafeBytes(of: look.peer) { Self.text($0) }
            return WaitedDescriptor(
                number: number, target: target, peer: peer, domain: look.socket_domain)
        }
    }

    /// The first few descriptors of `poll`; of `select` those in the set of readable ones.
    private func polledDescriptors() -> [Int32] {
        let isSelect = call?.name == "select" || call?.name == "pselect6"
        guard isSelect else {
            let count = Int(min(arguments[1], 8))
            return Self.memory(arguments[0], count * 8).chunks(of: 8).map { entry in
                Int32(bitPattern: entry.prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) })
            }.filter { $0 >= 0 }
        }
        var numbers: [Int32] = []
        for set in arguments[1...3] where set != 0 {
            for (index, byte) in Self.memory(set, Int(min(arguments[0] + 7, 1024) / 8)).enumerated()
            {
                for bit in 0..<8 where byte >> bit & 1 == 1 && numbers.count < 8 {
                    numbers.append(Int32(index * 8 + bit))
                }
            }
        }
        return numbers
    }

    private mutating func readFutex() {
        let operation = UInt32(truncatingIfNeeded: arguments[1])
        let bytes = Self.memory(arguments[0], 32)
        futex = WaitedFutex(
            address: arguments[0], operation: operation & 127,
            words: bytes.chunks(of: 4).map { $0.reversed().reduce(0) { $0 << 8 | UInt32($1) } })
        let limit = Self.memory(arguments[3], 16).chunks(of: 8).map { word in
            Int64(bitPattern: word.reversed().reduce(0) { $0 << 8 | UInt64($1) })
        }
        guard arguments[3] != 0, limit.count == 2 else { return }
        let time = Duration.seconds(limit[0]) + .nanoseconds(limit[1])
        let now = MonotonicInstant(nanoseconds: stall_monotonic_ns())
        if operation & 127 == 0 {
            // Relative to when the call began, which is not known: at the latest.
            deadline = now + time
        } else if operation & 256 != 0 {
            deadline = now + (time - .microseconds(stall_unix_us()))
        } else {
            deadline = MonotonicInstant(nanoseconds: UInt64(max(0, time.nanoseconds)))
        }
    }

    private static func fileLockHolder() -> HoldingProcess? {
        var process: Int32 = 0
        guard stall_file_lock_holder(&process) else { return nil }
        let name = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16) { buffer in
            stall_process_read_name(process, buffer.baseAddress!)
                ? String(cString: buffer.baseAddress!) : nil
        }
        return HoldingProcess(process: process, name: name)
    }

    private static func memory(_ address: UInt64, _ length: Int) -> [UInt8] {
        guard address != 0, length > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            count = stall_memory_read(address, buffer.baseAddress!, length)
        }
    }

    static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
}

extension WaitedDescriptor {
    /// Tells what it is from the link in `/proc/self/fd`; the file itself is not asked.
    package init(number: Int32, target: String, peer: String, domain: Int32) {
        let isInternet = domain == AF_INET || domain == AF_INET6
        let kind: DescriptorKind =
            if target.hasPrefix("socket:") {
                isInternet ? .networkSocket : .localSocket
            } else if target.hasPrefix("pipe:") {
                .pipe
            } else if target.hasPrefix("anon_inode:") {
                switch target {
                case "anon_inode:[eventfd]": .event
                case "anon_inode:[timerfd]": .timer
                case "anon_inode:[eventpoll]": .epoll
                default: .other
                }
            } else if target.hasPrefix("/dev/pts/") || target.hasPrefix("/dev/tty") {
                .terminal
            } else if target.hasPrefix("/memfd:") || target.hasPrefix("/dev/shm/") {
                .memory
            } else if Self.isMadeByKernel(target) {
                .other
            } else {
                target.hasPrefix("/") ? .file : .other
            }
        self.init(
            number: number, kind: kind,
            target: isInternet ? (peer.isEmpty ? "internet socket" : peer) : target)
    }

    /// No disk is behind it.
    private static func isMadeByKernel(_ path: String) -> Bool {
        let devices: Set = [
            "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/kmsg",
        ]
        return devices.contains(path) || path.hasPrefix("/proc/") || path.hasPrefix("/sys/")
            || path.hasPrefix("/dev/input/")
    }
}

extension SystemCall {
    /// A call on a file whose first argument is a descriptor of it.
    var takesDescriptor: Bool {
        Self.descriptorCalls.contains(name)
    }

    private static let descriptorCalls: Set<String> = [
        "fsync", "fdatasync", "sync_file_range", "ftruncate", "fallocate", "getdents",
        "getdents64", "fstat", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2",
        "readahead", "syncfs", "fstatfs", "fadvise64", "close",
    ]
}

extension [UInt8] {
    /// Whole pieces of this length.
    fileprivate func chunks(of length: Int) -> [ArraySlice<UInt8>] {
        stride(from: 0, through: count - length, by: length).map { self[$0..<$0 + length] }
    }
}
