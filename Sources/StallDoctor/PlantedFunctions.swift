// Functions that keep their thread for a known reason. They are never inlined: a report has to name them.

internal import CLinux
internal import Glibc
internal import StallAgent
internal import Synchronization

/// How long a planted stall lasts. Set before other threads are started.
nonisolated(unsafe) var plantedTime = Duration.milliseconds(150)

/// Elapsed time on CLOCK_MONOTONIC.
func monotonicTime(_ clock: clockid_t = CLOCK_MONOTONIC) -> Duration {
    var time = timespec()
    clock_gettime(clock, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}

extension Duration {
    fileprivate var timespec: Glibc.timespec {
        Glibc.timespec(tv_sec: 0, tv_nsec: Int(self / .nanoseconds(1)))
    }
}

/// Waits of planted stalls that a signal ended.
let interruptions = Atomic(0)

private func note(_ result: Int) {
    if result < 0, errno == EINTR { interruptions.add(1, ordering: .relaxed) }
}

private func pause(_ time: Duration) {
    let end = monotonicTime() + time
    while true {
        let left = end - monotonicTime()
        guard left > .zero else { return }
        note(Int(usleep(useconds_t(min(left, .seconds(1)) / .microseconds(1)))))
    }
}

// Each reads the clock last, so that the wait is no tail call and its function stays on the stack. No two wait by the same
// call: the compiler would merge them into one function of one name.

@inline(never) func sleepForDoctor() -> Duration {
    pause(plantedTime)
    return monotonicTime()
}

@inline(never) func computeForDoctor() -> Duration {
    // Longer than the others, which need the processors as well at their start.
    let end = monotonicTime(CLOCK_THREAD_CPUTIME_ID) + plantedTime * 2
    var number: UInt64 = 1
    while monotonicTime(CLOCK_THREAD_CPUTIME_ID) < end {
        for _ in 0..<10_000 { number = number &* 6_364_136_223_846_793_005 &+ 1 }
    }
    return number == 0 ? .zero : monotonicTime()
}

/// A mutex that one thread holds while another waits for it.
final class PlantedMutex: @unchecked Sendable {
    // Unchecked because the mutex is the C library's.
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    init() { pthread_mutex_init(mutex, nil) }

    @inline(never) func holdForDoctor(_ isHeld: DispatchSemaphore) -> Duration {
        pthread_mutex_lock(mutex)
        isHeld.signal()
        pause(plantedTime)
        pthread_mutex_unlock(mutex)
        return monotonicTime()
    }

    @inline(never) func waitForDoctorsLock() -> Duration {
        pthread_mutex_lock(mutex)
        pthread_mutex_unlock(mutex)
        return monotonicTime()
    }
}

@inline(never) func readFromDoctorsPipe(_ pipe: CInt) -> Duration {
    var byte: UInt8 = 0
    note(read(pipe, &byte, 1))
    return monotonicTime()
}

@inline(never) func receiveForDoctor(_ socket: CInt) -> Duration {
    var byte: UInt8 = 0
    note(recv(socket, &byte, 1, 0))
    return monotonicTime()
}

@inline(never) func workInDoctorsLoop() -> Duration {
    var time = plantedTime.timespec
    note(Int(nanosleep(&time, nil)))
    return monotonicTime()
}

@inline(never) func blockDoctorsTask() -> Duration {
    note(Int(poll(nil, 0, CInt(plantedTime / .milliseconds(1)))))
    return monotonicTime()
}

@inline(never) func blockDoctorsQueue() -> Duration {
    var time = timeval(tv_sec: 0, tv_usec: Int(plantedTime / .microseconds(1)))
    note(Int(select(0, nil, nil, nil, &time)))
    return monotonicTime()
}

@inline(never) func workBetweenDoctorsWaits() -> Duration {
    var time = plantedTime.timespec
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nil)
    return monotonicTime()
}

@inline(never) func stallUntilKilled() -> Duration {
    pause(.seconds(60))
    return monotonicTime()
}

/// Stops the process until its parent continues it. Its own time is far below the threshold.
@inline(never) func workWhileStopped() -> Duration {
    kill(getpid(), SIGSTOP)
    return monotonicTime()
}

/// Runs `body` on a thread of its own.
func onThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> pthread_t {
    let context = Unmanaged.passRetained(ThreadBody(name, body))
    var thread = pthread_t()
    let error = pthread_create(
        &thread, nil,
        {
            let body = Unmanaged<ThreadBody>.fromOpaque($0!).takeRetainedValue()
            stall_thread_set_name(body.name)
            body.run()
            return nil
        }, context.toOpaque())
    precondition(error == 0, "a thread for a planted stall: \(String(cString: strerror(error)))")
    return thread
}

private final class ThreadBody: Sendable {
    let name: String
    let run: @Sendable () -> Void
    init(_ name: String, _ run: @escaping @Sendable () -> Void) {
        self.name = name
        self.run = run
    }
}
