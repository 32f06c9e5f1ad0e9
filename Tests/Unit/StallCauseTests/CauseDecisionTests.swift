import StallModel
import Testing

@testable import StallCause

/// Goal: each kind of evidence leads to its class, missing evidence only lowers the confidence, and shares add up.
/// Method: tables of facts made by hand; nothing is read from a kernel.
@Suite struct CauseDecisionTests {
    static let thread = ThreadID(rawValue: 10)

    static func number(_ name: String) -> Int32 {
        let row = SystemCall.table.first { $0.name == name }!
        #if arch(arm64)
        return row.arm64!
        #else
        return row.x86_64!
        #endif
    }

    /// A thread that is blocked in a system call.
    static func wait(
        _ call: String?, on descriptor: (DescriptorKind, String)? = nil, state: Character = "S"
    ) -> Wait {
        var wait = Wait()
        wait.state = state.asciiValue!
        wait.systemCall = call.map(number)
        if let descriptor {
            wait.descriptors = [
                WaitedDescriptor(number: 7, kind: descriptor.0, target: descriptor.1)
            ]
        }
        if call == "futex" {
            wait.futex = WaitedFutex(
                address: 0x1000, operation: 0, words: [2, 0, 42, 1, 0, 0, 0, 0])
        }
        return wait
    }

    static var running: Wait {
        var wait = Wait()
        wait.isRunning = true
        wait.state = UInt8(ascii: "R")
        return wait
    }

    /// A stall of a second, seen four times.
    static func facts(
        _ wait: Wait, _ functions: [String] = [], cpu: Double = 0, delay: Double = 0,
        verdict: StallVerdict = .stalled, change: (inout CauseFacts) -> Void = { _ in }
    ) -> CauseFacts {
        var growth = Counters()
        growth.cpuTime = .seconds(cpu)
        growth.runDelay = .seconds(delay)
        var facts = CauseFacts(
            verdict: verdict, duration: .seconds(1), cpuTime: .seconds(cpu),
            ended: MonotonicInstant(nanoseconds: 1_000_000_000),
            samples: (0..<4).map { number in
                CauseSample(
                    weight: .milliseconds(250),
                    observation: Observation(
                        at: MonotonicInstant(nanoseconds: UInt64(number) * 250_000_000),
                        thread: thread, wait: wait, counters: Counters()),
                    functions: functions)
            }, growth: growth, observed: .seconds(1))
        change(&facts)
        return facts
    }

    @Test(arguments: [
        (wait("fsync", on: (.file, "/var/db"), state: "D"), ["fsync"], CauseClass.disk),
        (wait("read", on: (.file, "/var/db"), state: "D"), ["read"], .disk),
        (wait("getdents64", on: (.file, "/usr")), [], .disk),
        (wait("read", on: (.networkSocket, "10.0.0.7:80")), ["read"], .network),
        (wait("recvfrom", on: (.networkSocket, "10.0.0.7:80")), ["recv"], .network),
        (wait("connect", on: (.networkSocket, "internet socket")), [], .network),
        (wait("poll", on: (.networkSocket, "10.0.0.7:53")), ["poll"], .network),
        (
            wait("poll", on: (.localSocket, "socket:[5]")), ["poll", "send_dg", "getaddrinfo"],
            .network
        ),
        (wait("read", on: (.pipe, "pipe:[5]")), ["read"], .ipc),
        (wait("read", on: (.memory, "/memfd:plant")), ["read"], .pageFault),
        (wait("recvfrom", on: (.localSocket, "socket:[5]")), ["recv"], .ipc),
        (wait("read", on: (.event, "anon_inode:[eventfd]")), [], .ipc),
        (wait("wait4"), ["waitpid"], .ipc),
        (wait("flock", on: (.file, "/var/lock/photos")), ["flock"], .lock),
        (wait("fcntl", on: (.file, "/var/lock/photos")), [], .lock),
        (wait("clock_nanosleep"), ["clock_nanosleep", "usleep"], .sleep),
        (wait("poll"), ["poll"], .sleep),
        (wait("futex"), ["__lll_lock_wait", "pthread_mutex_lock"], .lock),
        (wait("futex"), ["", "__pthread_cond_wait"], .lock),
        (wait("futex"), [], .lock),
        (wait(nil, state: "D"), ["touchPages()"], .pageFault),
        (wait(nil, state: "T"), ["work()"], .stopped),
    ])
    func `a blocked thread's wait is the cause`(wait: Wait, functions: [String], cause: CauseClass)
    {
        let decided = decideCause(Self.facts(wait, functions))
        #expect(decided.cause == cause)
        #expect(decided.shares == [CauseShare(cause, 1)])
        #expect(decided.confidence >= 0.5)
    }

    @Test func `a thread that runs computes, or spins for what its stack says`() {
        #expect(decideCause(Self.facts(Self.running, ["work()"], cpu: 1)).cause == .cpu)
        #expect(
            decideCause(Self.facts(Self.running, ["pthread_spin_lock"], cpu: 1)).cause == .lock)
        #expect(
            decideCause(Self.facts(Self.running, ["pthread_mutex_lock"], cpu: 1)).cause == .cpu)
    }

    @Test(arguments: ["read", "write", "__lxstat", "stat", "getaddrinfo"], [0.82, 1])
    func `a running thread does not wait, whatever it calls`(call: String, cpu: Double) {
        let decided = decideCause(Self.facts(Self.running, [call], cpu: cpu))
        #expect(decided.cause == .cpu)
        #expect(decided.shares == [CauseShare(.cpu, 1)])
        #expect(!decided.evidence.contains { $0.name == "system call" })
    }

    @Test func `short waits between the samples are about what the stack says`() {
        let decided = decideCause(
            Self.facts(Self.running, ["pread64"], cpu: 0.3) { $0.growth.waits = 200 })
        #expect(decided.shares == [CauseShare(.disk, 0.7), CauseShare(.cpu, 0.3)])
    }

    @Test func `opening a FIFO waits for its other end`() {
        var wait = Self.wait("openat")
        wait.waitChannel = "wait_for_partner"
        #expect(decideCause(Self.facts(wait, ["open64"])).cause == .ipc)
    }

    @Test func `time ready to run without a CPU is starvation, or throttling when the group was`() {
        let starved = decideCause(Self.facts(Self.running, ["work()"], cpu: 0.2, delay: 0.8))
        #expect(starved.cause == .starved)
        #expect(starved.shares == [CauseShare(.starved, 0.8), CauseShare(.cpu, 0.2)])
        let throttled = decideCause(
            Self.facts(Self.running, ["work()"], cpu: 0.2, delay: 0.8) {
                $0.growth.throttled = .milliseconds(750)
            })
        #expect(throttled.cause == .throttled)
        #expect(throttled.shares.first == CauseShare(.throttled, 0.75))
    }

    @Test func `a mixed stall has shares, and the largest is the cause`() {
        let facts = Self.facts(Self.wait("fsync", state: "D"), ["fsync"], cpu: 0.29) {
            $0.samples[0].observation.wait = Self.running
            $0.samples[0].functions = ["encode()"]
        }
        let cause = decideCause(facts)
        #expect(cause.shares == [CauseShare(.disk, 0.71), CauseShare(.cpu, 0.29)])
        #expect(cause.cause == .disk)
    }

    @Test func `the holder of a file lock is reported`() {
        var wait = Self.wait("flock", on: (.file, "/var/lock/photos"))
        wait.fileLockHolder = HoldingProcess(process: 4719, name: "backup")
        let evidence = decideCause(Self.facts(wait, ["flock"])).evidence
        #expect(evidence.contains(CauseEvidence("lock", "a file lock")))
        #expect(evidence.contains(CauseEvidence("held by", "process 4719 'backup'")))
        #expect(evidence.contains(CauseEvidence("system call", "flock(7: /var/lock/photos)")))
    }

    @Test func `a condition's time limit that passed made it a sleep`() {
        func cause(endingAt end: UInt64, limit: UInt64?) -> CauseClass {
            var wait = Self.wait("futex")
            wait.deadline = limit.map { MonotonicInstant(nanoseconds: $0) }
            return decideCause(
                Self.facts(wait, ["pthread_cond_timedwait"]) {
                    $0.ended = MonotonicInstant(nanoseconds: end)
                }
            ).cause
        }
        #expect(cause(endingAt: 1_000_000_000, limit: 1_000_000_000) == .sleep)
        #expect(cause(endingAt: 1_000_000_000, limit: 5_000_000_000) == .lock)
        #expect(cause(endingAt: 1_000_000_000, limit: nil) == .lock)
    }

    @Test(arguments: [UnreadableFacts.systemCall, .schedule, .state])
    func `what cannot be read lowers the confidence and is said`(fact: UnreadableFacts) {
        let whole = Self.facts(Self.wait("clock_nanosleep"), ["clock_nanosleep", "usleep"])
        var partial = whole
        for index in partial.samples.indices {
            partial.samples[index].observation.wait.unreadable = fact
            partial.samples[index].observation.wait.waitChannel = "hrtimer_nanosleep"
            if fact == .systemCall { partial.samples[index].observation.wait.systemCall = nil }
        }
        let (sure, unsure) = (decideCause(whole), decideCause(partial))
        #expect(unsure.cause == sure.cause)
        #expect(unsure.confidence < sure.confidence)
        #expect(unsure.evidence.contains { $0.name == "not readable" })
        #expect(!sure.evidence.contains { $0.name == "not readable" })
    }

    @Test func `a stall without any evidence is unknown, and hardly sure of that`() {
        let cause = decideCause(
            CauseFacts(
                verdict: .stalled, duration: .seconds(1), cpuTime: .zero, ended: nil, samples: [],
                growth: Counters(), observed: .zero))
        #expect(cause.cause == .unknown && cause.confidence < 0.5)
    }

    @Test func `a stopped process is the cause, unless the thread never left its wait`() {
        var moved = Self.facts(Self.wait("futex"), ["pthread_mutex_lock"], verdict: .stopped)
        moved.growth.waits = 5
        #expect(decideCause(moved).cause == .stopped)
        let still = Self.facts(Self.wait("futex"), ["pthread_mutex_lock"], verdict: .stopped)
        #expect(decideCause(still).cause == .lock)
    }
}
