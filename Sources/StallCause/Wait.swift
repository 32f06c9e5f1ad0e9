// What a thread was seen to wait in at one instant. Only facts: CauseDecision.swift draws the conclusions.

package import StallModel

/// What a descriptor leads to.
package enum DescriptorKind: Hashable, Sendable {
    /// A path of a file system.
    case file
    /// A file that is only memory: `memfd_create`, `/dev/shm`.
    case memory
    /// An internet socket.
    case networkSocket
    /// A socket between processes of this machine, or of a family that is not told apart.
    case localSocket
    case pipe
    case event
    case timer
    case epoll
    case terminal
    case other
}

/// A descriptor that a thread waits for.
package struct WaitedDescriptor: Hashable, Sendable {
    package var number: Int32
    package var kind: DescriptorKind
    /// A path, a peer's address, or what the kernel calls it.
    package var target: String

    package init(number: Int32, kind: DescriptorKind, target: String) {
        self.number = number
        self.kind = kind
        self.target = target
    }
}

/// The futex a thread waits for, with the memory around the word.
package struct WaitedFutex: Hashable, Sendable {
    package var address: UInt64
    /// `FUTEX_WAIT` and others, without the flags.
    package var operation: UInt32
    /// The words from the address on; fewer where memory ends.
    package var words: [UInt32]
    /// Who runs the items of the dispatch queue, when that is what is waited for.
    package var drainer: ThreadID?

    package init(address: UInt64, operation: UInt32, words: [UInt32], drainer: ThreadID? = nil) {
        self.address = address
        self.operation = operation
        self.words = words
        self.drainer = drainer
    }

    /// The kernel itself takes the word for the owner's id: `FUTEX_LOCK_PI`.
    var namesOwner: Bool { operation == 6 || operation == 13 }
}

/// A process that holds a file lock.
package struct HoldingProcess: Hashable, Sendable {
    package var process: Int32
    package var name: String?

    package init(process: Int32, name: String?) {
        self.process = process
        self.name = name
    }
}

/// Facts that can be missing: then a cause is less sure.
package struct UnreadableFacts: OptionSet, Hashable, Sendable {
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

/// What one thread did at one instant, as the kernel tells it.
package struct Wait: Hashable, Sendable {
    package var isRunning = false
    /// The letter of proc(5).
    package var state = UInt8(ascii: "?")
    /// Nil when it runs and when it is blocked outside of a system call.
    var systemCall: Int32?
    package var arguments: [UInt64] = []
    var waitChannel = ""
    package var descriptors: [WaitedDescriptor] = []
    package var futex: WaitedFutex?
    package var fileLockHolder: HoldingProcess?
    /// While it sleeps: who holds the lock of a database that this process has open.
    package var databaseLockHolder: HoldingProcess?
    /// When the system call gives up by itself; nil when it never does or that is not known.
    package var deadline: MonotonicInstant?
    package var unreadable: UnreadableFacts = []

    package init() {}

    package var call: SystemCall? { systemCall.flatMap(SystemCall.init) }
    /// Seen blocked outside of any system call: the kernel fetches memory for it.
    var isBlockedOutsideCalls: Bool {
        !isRunning && systemCall == nil && !unreadable.contains(.systemCall)
    }
}

/// Counters of a thread, its process and its control group; only differences mean something.
package struct Counters: Hashable, Sendable {
    package var cpuTime = Duration.zero
    package var runDelay = Duration.zero
    var minorFaults: UInt64 = 0
    var majorFaults: UInt64 = 0
    package var waits: UInt64 = 0
    var preemptions: UInt64 = 0
    var processTime = Duration.zero
    package var throttled = Duration.zero
    /// Periods in which the quota ran out.
    package var throttleCount: UInt64 = 0
    /// Time in which some task of the machine waited for a CPU, for input and output, for memory.
    package var pressure: [Duration] = [.zero, .zero, .zero]

    package init() {}

    /// What was added since then.
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

/// A thread that may hold what another one waits for. Whether it does, the waiter's stack tells.
package struct LockSuspect: Hashable, Sendable {
    /// Where the owner's id was found.
    package enum Field: Hashable, Sendable {
        /// The futex word itself: priority-inheriting mutexes, Swift's `Mutex`, a thread that is joined.
        case word
        /// `__owner` of a glibc mutex.
        case mutexOwner
        /// `__cur_writer` of a glibc rwlock, seen from the word that its readers, or its writers, wait for.
        case rwlockWriterFromReader, rwlockWriterFromWriter
        /// The state of the dispatch queue that is waited for.
        case queueState
    }

    package var waiter: ThreadID
    package var address: UInt64
    package var field: Field
    package var owner: ThreadID
    package var name: String?
    /// What the owner itself waited for.
    package var wait: Wait
    package var counters: Counters
    package var stack: CapturedStack?
    package var failure: String?
    /// The names of the functions on its stack, innermost first; empty until they are looked up.
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

/// All that was learned of a stalled thread in one look.
package struct Observation: Hashable, Sendable {
    package var at: MonotonicInstant
    package var thread: ThreadID
    package var wait: Wait
    package var counters: Counters
    package var suspects: [LockSuspect]
    /// How long looking took, without the suspects.
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
