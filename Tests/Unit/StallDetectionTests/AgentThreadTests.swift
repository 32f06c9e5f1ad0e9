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
}
