// The wait of a thread at one instant. Facts only: CauseDecision.swift draws the conclusions.

package import StallModel

/// The target of a descriptor.
package enum DescriptorKind: Hashable, Sendable {
    /// A path in a file system.
    case file
    /// A file in memory: `memfd_create`, `/dev/shm`.
    case memory
    /// An internet socket.
    case networkSocket
    /// A socket between local processes, or of another family.
    case localSocket
    case pipe
    case event
    case timer
    case epoll
    case terminal
    /// The end of a process.
    case process
    /// Signals, and what happens to files, pages or other programs: inotify, signalfd.
    case notification
    /// A character device that is no terminal.
    case device
    /// A character device whose other side is the network: `/dev/net/tun`.
    case networkDevice
    case other
}

/// A descriptor that a thread waits for.
package struct WaitedDescriptor: Equatable, Sendable {
    package var number: Int32
    package var kind: DescriptorKind
    /// A path, a peer's address, or the kernel's name for it.
    package var target: String

    package init(number: Int32, kind: DescriptorKind, target: String) {
        self.number = number
        self.kind = kind
        self.target = target
    }
}

/// The futex that a thread waits for, with the memory around the word.
package struct WaitedFutex: Equatable, Sendable {
    package var address: UInt64
    /// `FUTEX_WAIT` and others, without flags.
    package var operation: UInt32
    /// The words from the address on; fewer at the end of mapped memory.
    package var words: [UInt32]
    /// The thread that drains the dispatch queue, if the wait is for a queue.
    package var drainer: ThreadID?

    package init(address: UInt64, operation: UInt32, words: [UInt32], drainer: ThreadID? = nil) {
        self.address = address
        self.operation = operation
        self.words = words
        self.drainer = drainer
    }

    /// The kernel itself interprets the word as the owner's id: `FUTEX_LOCK_PI`.
    var namesOwner: Bool { operation == 6 || operation == 13 }
}

/// A process that holds a file lock.
package struct HoldingProcess: Equatable, Sendable {
    package var process: Int32
    package var name: String?

    package init(process: Int32, name: String?) {
        self.process = process
        self.name = name
    }
}

/// Facts that could not be read; each lowers the confidence in a cause.
package struct UnreadableFacts: OptionSet, Equatable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }
    static let systemCall = UnreadableFacts(rawValue: 1)
    package static let state = UnreadableFacts(rawValue: 2)
    static let waitChannel = UnreadableFacts(rawValue: 4)
    package static let schedule = UnreadableFacts(rawValue: 8)
    package static let switches = UnreadableFacts(rawValue: 16)
    package static let controlGroup = UnreadableFacts(rawValue: 32)
    package static let pressure = UnreadableFacts(rawValue: 64)

    package static let names: [(fact: UnreadableFacts, name: String)] = [
        (.systemCall, "system call"), (.state, "state"), (.waitChannel, "wait channel"),
        (.schedule, "run delay"), (.switches, "context switches"),
        (.controlGroup, "control group"), (.pressure, "pressure"),
    ]
}

/// The activity of one thread at one instant, according to the kernel.
package struct Wait: Equatable, Sendable {
    package var isRunning = false
    /// The state letter of proc(5).
    package var state = UInt8(ascii: "?")
    /// Nil while it runs, and while it is blocked outside of system calls.
    var systemCall: Int32?
    package var arguments: [UInt64] = []
    var waitChannel = ""
    package var descriptors: [WaitedDescriptor] = []
    package var futex: WaitedFutex?
    /// Of an io_uring: a bit for each operation that waits for its descriptor.
    var ringOperations: UInt64 = 0
    package var fileLockHolder: HoldingProcess?
    /// While it sleeps: the holder of a lock on a database that this process has open.
    package var databaseLockHolder: HoldingProcess?
    /// When the system call times out; nil if it has no timeout or that is unknown.
    package var deadline: MonotonicInstant?
    package var unreadable: UnreadableFacts = []

    package init() {}

    package var call: SystemCall? { systemCall.flatMap(SystemCall.init) }
    /// Blocked outside of any system call: the kernel reads memory in for it.
    var isBlockedOutsideCalls: Bool {
        !isRunning && systemCall == nil && !unreadable.contains(.systemCall)
    }
}

/// Counters of a thread, its process and its control group; only their differences are meaningful.
package struct Counters: Equatable, Sendable {
    package var cpuTime = Duration.zero
    package var runDelay = Duration.zero
    var minorFaults: UInt64 = 0
    var majorFaults: UInt64 = 0
    package var waits: UInt64 = 0
    var preemptions: UInt64 = 0
    var processTime = Duration.zero
    package var throttled = Duration.zero
    /// The number of periods in which the quota ran out.
    package var throttleCount: UInt64 = 0
    /// Time in which some task of the machine waited for a CPU, for I/O, for memory.
    package var pressure: [Duration] = [.zero, .zero, .zero]

    package init() {}

    /// The differences since `earlier`.
    package func growth(since earlier: Counters) -> Counters {
        var growth = Counters()
        growth.cpuTime = max(.zero, cpuTime - earlier.cpuTime)
        growth.runDelay = max(.zero, runDelay - earlier.runDelay)
        growth.minorFaults = minorFaults.growth(since: earlier.minorFaults)
        growth.majorFaults = majorFaults.growth(since: earlier.majorFaults)
        growth.waits = waits.growth(since: earlier.waits)
        growth.preemptions = preemptions.growth(since: earlier.preemptions)
        growth.processTime = max(.zero, processTime - earlier.processTime)
        growth.throttled = max(.zero, throttled - earlier.throttled)
        growth.throttleCount = throttleCount.growth(since: earlier.throttleCount)
        growth.pressure = zip(pressure, earlier.pressure).map { max(.zero, $0 - $1) }
        return growth
    }
}

extension UInt64 {
    fileprivate func growth(since earlier: UInt64) -> UInt64 {
        self > earlier ? self - earlier : 0
    }
}

/// A thread that may hold what another one waits for. The waiter's stack decides whether it does.
package struct LockSuspect: Equatable, Sendable {
    /// Where the owner's id was found.
    package enum Field: Hashable, Sendable {
        /// The futex word itself: priority-inheriting mutexes, Swift's `Mutex`, a thread to be joined.
        case word
        /// `__owner` of a glibc mutex.
        case mutexOwner
        /// `__cur_writer` of a glibc rwlock, relative to the word that its readers, or its writers, wait for.
        case rwlockWriterFromReader, rwlockWriterFromWriter
        /// The state of the dispatch queue of the wait.
        case queueState
    }

    package var waiter: ThreadID
    package var address: UInt64
    package var field: Field
    package var owner: ThreadID
    package var name: String?
    /// The owner's own wait.
    package var wait: Wait
    package var counters: Counters
    package var stack: CapturedStack?
    package var failure: String?
    /// The function names on its stack, innermost first; empty before symbolication.
    package var functions: [String]

    package init(
        waiter: ThreadID, address: UInt64, field: Field, owner: ThreadID, name: String?,
        wait: Wait, counters: Counters = Counters(), stack: CapturedStack? = nil,
        failure: String? = nil, functions: [String] = []
    ) {
        self.waiter = waiter
        self.address = address
        self.field = field
        self.owner = owner
        self.name = name
        self.wait = wait
        self.counters = counters
        self.stack = stack
        self.failure = failure
        self.functions = functions
    }
}

/// The evidence of a stalled thread in one sample.
package struct Observation: Equatable, Sendable {
    package var at: MonotonicInstant
    package var thread: ThreadID
    package var wait: Wait
    package var counters: Counters
    package var suspects: [LockSuspect]
    /// How long reading took, without the suspects.
    package var cost: Duration

    package init(
        at: MonotonicInstant, thread: ThreadID, wait: Wait, counters: Counters,
        suspects: [LockSuspect] = [], cost: Duration = .zero
    ) {
        self.at = at
        self.thread = thread
        self.wait = wait
        self.counters = counters
        self.suspects = suspects
        self.cost = cost
    }
}
