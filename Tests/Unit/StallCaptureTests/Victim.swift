// The ways in which the tests let a thread stall, and what it recorded about itself just before.

import CCaptureTesting
import Glibc
import StallCapture
import StallModel
import Synchronization

enum Stall: CaseIterable, Sendable {
    case usleep, mutex, pipe, poll, condition, semaphore, connect, signalHandler, alternateStack,
        deepRecursion
    case vfork, computing, computingDeaf, computingAlwaysDeaf, deepComputing, deepBriefWaits,
        longSystemCall, generated, generatedComputing, nothing

    static let blocked: [Stall] = [
        .usleep, .mutex, .pipe, .poll, .condition, .semaphore, .connect, .signalHandler,
        .alternateStack,
        .deepRecursion,
    ]
}

/// A thread that stalls in the given way until it is released.
final class Victim: @unchecked Sendable {  // the pointers are set before the thread starts
    private let stall: Stall
    private let recorded = Mutex<[UInt64]>([])
    private let isStalling = Atomic<Bool>(false)
    private let isReleased = Atomic<Bool>(false)
    private let failure = Atomic<CInt>(0)
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let semaphore = TestSemaphore()
    private let pipeEnds: (read: CInt, write: CInt)
    private var running: VictimThread?

    /// Starts the thread; returns when it is about to stall.
    init(_ stall: Stall) {
        self.stall = stall
        var ends: [CInt] = [0, 0]
        pipe(&ends)
        pipeEnds = (ends[0], ends[1])
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
        if stall == .mutex { pthread_mutex_lock(mutex) }
        let isDeaf: Bool? =
            stall == .computingAlwaysDeaf ? true : stall == .computingDeaf ? false : nil
        running = VictimThread(stackSize: 64 << 20, isDeaf: isDeaf) { [self] in begin() }
        while !isStalling.load(ordering: .acquiring) { sched_yield() }
    }

    var thread: RegisteredThread { running!.thread }
    /// Return addresses, innermost first; the first lies in the function that stalls.
    var callers: [UInt64] { recorded.withLock { $0 } }
    /// Whether the system call it waited in returned EINTR.
    var wasInterrupted: Bool { failure.load(ordering: .acquiring) == EINTR }

    func waitUntilBlocked(in state: Character = "S") { running!.waitForState(state) }

    func release() {
        isReleased.store(true, ordering: .releasing)
        switch stall {
        case .mutex: pthread_mutex_unlock(mutex)
        case .pipe, .poll: write(pipeEnds.write, "x", 1)
        case .condition:
            pthread_mutex_lock(mutex)
            pthread_cond_signal(condition)
            pthread_mutex_unlock(mutex)
        case .semaphore, .generated: semaphore.signal()
        default: break
        }
    }

    /// Waits until the kernel has forgotten the thread.
    func waitForEnd() {
        running!.waitForEnd()
        var probe = ThreadStatReader(thread.id)
        while probe.state() != nil { sched_yield() }
    }

    private func begin() {
        switch stall {
        case .deepRecursion: recurse(5_000) { [self] in wait(.usleep) }
        case .deepComputing: recurse(40_000) { [self] in wait(.computing) }
        case .deepBriefWaits: recurse(5_000) { [self] in wait(.deepBriefWaits) }
        case .computingDeaf:
            blockSignals(true)
            wait(.computing)
            blockSignals(false)  // what was sent meanwhile arrives here
        case .generated, .generatedComputing:
            // The other unwinder does not get past such code: it records what called that.
            record()
            let isRefused = !testing_call_from_generated_code(
                { Unmanaged<Victim>.fromOpaque($0).takeUnretainedValue().waitInGenerated() },
                Unmanaged.passUnretained(self).toOpaque())
            if isRefused { failure.store(EACCES, ordering: .releasing) }
        default: wait(stall)
        }
    }

    /// The caller and its callers.
    @inline(never) private func record() {
        var addresses = [UInt64](repeating: 0, count: 50_000)
        let count = testing_return_addresses(&addresses, 50_000)
        recorded.withLock { $0 = Array(addresses[1..<Int(count)]) }
    }

    @inline(never) private func waitInGenerated() {
        isStalling.store(true, ordering: .releasing)
        if stall == .generated {
            semaphore.wait()
        } else {
            while !isReleased.load(ordering: .relaxed) {}
        }
    }

    @inline(never) private func recurse(_ depth: Int, _ body: () -> Void) {
        if depth == 0 { body() } else { recurse(depth - 1, body) }
        withExtendedLifetime(depth) {}
    }

    /// The function that stalls: it records its callers and then waits in the same frame.
    @inline(never) private func wait(_ stall: Stall) {
        record()
        isStalling.store(true, ordering: .releasing)
        var result: CInt = 0
        switch stall {
        case .usleep, .deepRecursion: result = Glibc.usleep(200_000)
        case .mutex: pthread_mutex_lock(mutex)
        case .pipe:
            var byte: UInt8 = 0
            result = CInt(read(pipeEnds.read, &byte, 1))
        case .poll:
            var request = pollfd(fd: pipeEnds.read, events: Int16(POLLIN), revents: 0)
            result = Glibc.poll(&request, 1, 10_000)
        case .condition:
            pthread_mutex_lock(mutex)
            while !isReleased.load(ordering: .acquiring) { pthread_cond_wait(condition, mutex) }
            pthread_mutex_unlock(mutex)
        case .semaphore: semaphore.wait()
        case .connect: result = testing_connect_to_full_backlog(200)
        case .signalHandler: result = testing_sleep_in_handler(0, 200_000)
        case .alternateStack: result = testing_sleep_in_handler(1, 200_000)
        case .computing, .computingDeaf, .computingAlwaysDeaf, .deepComputing:
            while !isReleased.load(ordering: .relaxed) {}
        case .deepBriefWaits:
            while !isReleased.load(ordering: .acquiring), result == 0 {
                result = Glibc.usleep(50)
            }
        case .vfork: result = testing_vfork(500_000)
        case .longSystemCall: result = testing_long_system_call() > 0 ? 0 : -1
        case .generated, .generatedComputing, .nothing: break
        }
        if result < 0 { failure.store(errno, ordering: .releasing) }
    }
}

extension CapturedStack {
    /// Whether the outer frames are `callers`: all but the first exactly, and that one in the same function.
    func endsIn(_ callers: [UInt64]) -> Bool {
        guard let function = callers.first, addresses.count >= callers.count else { return false }
        let outer = addresses.suffix(callers.count)
        return outer.dropFirst().map(\.rawValue) == Array(callers.dropFirst())
            && testing_function_start(outer.first!.rawValue) == testing_function_start(function)
    }
}
