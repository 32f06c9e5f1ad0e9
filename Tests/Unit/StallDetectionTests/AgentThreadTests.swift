import CCaptureTesting
import Glibc
import Synchronization
import Testing

@testable import StallDetection

/// Goal: the agent's threads start in any program, receive no signal that is sent to the app, and do not mask crashes.
/// Method: threads as the agent starts them, in a program whose thread-local variables alone fill the smallest stack.
@Suite struct AgentThreadTests {
    private static let faults: Set<CInt> = [
        SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS,
    ]

    @Test func `it blocks the signals that are sent, and not those of its own faults`() throws {
        let unblocked = Mutex<Set<CInt>>([])
        let thread = try #require(
            AgentThread(name: "test") {
                var mask = sigset_t()
                pthread_sigmask(SIG_SETMASK, nil, &mask)
                // The last two are not blocked by anyone, and two in the thirties belong to libc.
                let all = Set((1...31).filter { sigismember(&mask, $0) == 0 })
                unblocked.withLock { $0 = all.subtracting([SIGKILL, SIGSTOP]) }
            })
        thread.join()
        #expect(unblocked.withLock { $0 } == Self.faults)
    }

    @Test func `a crash on it reaches the app's crash handler`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            signal(SIGSEGV) { _ in _exit(7) }
            let thread = AgentThread(name: "test") {
                UnsafeMutablePointer<Int>(bitPattern: 16)!.pointee = 1
            }
            thread?.join()
        }
    }

    @Test(arguments: [1 << 14, 1 << 16, 1 << 20])
    func `a small stack has room for the program's thread-local variables`(bytes: Int) throws {
        let used = Atomic<CInt>(-1)
        let thread = try #require(
            AgentThread(name: "test", stackBytes: bytes) {
                used.store(testing_use_large_thread_local(), ordering: .relaxed)
            })
        thread.join()
        #expect(used.load(ordering: .relaxed) == 0)
    }

    /// Its creator may have got its class from the kernel or from the C library, which remembers it. In a process of its
    /// own: the process's first thread decides what is plain.
    @Test(.enabled(if: mayScheduleRealtime), arguments: [false, true])
    func `it has the process's class and nice value, one step above, or its creator's`(
        byLibrary: Bool
    ) async {
        await #expect(processExitsWith: .success) { [byLibrary] in
            // On a thread of its own: the one that runs this is Dispatch's.
            let isRight = Atomic(false)
            let creator = AgentThread(name: "creator", scheduling: .alike) {
                var parameters = sched_param()
                parameters.sched_priority = 10
                let error =
                    byLibrary
                    ? pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters)
                    : sched_setscheduler(0, SCHED_FIFO, &parameters)
                setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, -5)
                let found = [AgentThread.Scheduling.plain, .ahead, .alike].map(Scheduled.init)
                isRight.store(
                    error == 0
                        && found == [
                            Scheduled(policy: SCHED_OTHER, priority: 0, nice: 0),
                            Scheduled(policy: SCHED_FIFO, priority: 11, nice: -6),
                            Scheduled(policy: SCHED_FIFO, priority: 10, nice: -5),
                        ], ordering: .relaxed)
                if !isRight.load(ordering: .relaxed) { print(found) }
            }
            creator?.join()
            exit(isRight.load(ordering: .relaxed) ? 0 : 1)
        }
    }
}

private struct Scheduled: Equatable {
    var policy: CInt
    var priority: CInt
    var nice: CInt

    static var own: Scheduled {
        var parameters = sched_param()
        sched_getparam(0, &parameters)
        return Scheduled(
            policy: sched_getscheduler(0), priority: parameters.sched_priority,
            nice: getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0))
    }
}

extension Scheduled {
    /// That of a new thread.
    init(_ scheduling: AgentThread.Scheduling) {
        let found = Mutex<Scheduled?>(nil)
        AgentThread(name: "test", scheduling: scheduling) {
            found.withLock { $0 = .own }
        }?.join()
        self = found.withLock { $0 } ?? Scheduled(policy: -1, priority: -1, nice: 0)
    }
}

/// Tried on a thread that is not used otherwise.
private let mayScheduleRealtime: Bool = {
    let isAllowed = Atomic(false)
    AgentThread(name: "test", scheduling: .alike) {
        var parameters = sched_param()
        parameters.sched_priority = 10
        let mayRunFirst = sched_setscheduler(0, SCHED_FIFO, &parameters) == 0
        let mayBeNicer = setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, -6) == 0
        isAllowed.store(mayRunFirst && mayBeNicer, ordering: .relaxed)
    }?.join()
    return isAllowed.load(ordering: .relaxed)
}()
