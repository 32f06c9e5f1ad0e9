// A real thread for the tests: it registers itself, then runs the given body.

import CLinux
import Glibc
import StallCapture
import StallModel
import Synchronization

/// A thread that runs a body. Ends with the body, never joined: some bodies block for as long as the tests run.
final class VictimThread: Sendable {
    private let registration = Mutex<RegisteredThread?>(nil)
    private let isReady = TestSemaphore()
    private let hasEnded = TestSemaphore()

    /// Starts the thread and waits until it has registered itself.
    ///
    /// - Parameter isDeaf: Whether it blocks all signals before that, or none; nil: those of the caller.
    init(
        stackSize: Int = 1 << 20, isDeaf: Bool? = nil, _ body: @escaping @Sendable () -> Void
    ) {
        let start = Unmanaged.passRetained(
            ThreadStart { [self] in
                if let isDeaf { blockSignals(isDeaf) }
                registration.withLock { $0 = RegisteredThread.current() }
                isReady.signal()
                body()
                hasEnded.signal()
            })
        var attributes = pthread_attr_t()
        var thread = pthread_t()
        pthread_attr_init(&attributes)
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        pthread_attr_setstacksize(&attributes, stackSize)
        let error = pthread_create(
            &thread, &attributes,
            { argument in
                Unmanaged<ThreadStart>.fromOpaque(argument!).takeRetainedValue().body()
                return nil
            }, start.toOpaque())
        precondition(error == 0, "pthread_create failed with errno \(error)")
        isReady.wait()
    }

    var thread: RegisteredThread { registration.withLock { $0! } }

    func waitForEnd() { hasEnded.wait() }

    /// Waits until the kernel shows the thread in one of these states.
    func waitForState(_ states: Character...) {
        var probe = ThreadStatReader(thread.id)
        while let state = probe.state(), !states.contains(Character(UnicodeScalar(state))) {
            sched_yield()
        }
    }
}

func blockSignals(_ areBlocked: Bool) {
    var set = sigset_t()
    sigfillset(&set)
    pthread_sigmask(areBlocked ? SIG_BLOCK : SIG_UNBLOCK, &set, nil)
}

private final class ThreadStart: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

/// A POSIX semaphore with a fixed address.
final class TestSemaphore: @unchecked Sendable {  // sem_t is made for sharing
    private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    init() { sem_init(semaphore, 0, 0) }
    deinit { semaphore.deallocate() }
    func signal() { sem_post(semaphore) }
    func wait() { while sem_wait(semaphore) != 0 {} }
}
