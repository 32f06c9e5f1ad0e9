// The stalls: one after the other, so that a small share of a processor is enough for each.

import Dispatch
import Foundation
import StallAgent
import Synchronization

/// Seconds of a clock.
func now(_ clock: clockid_t = CLOCK_MONOTONIC) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

func pause(_ seconds: Double) { Thread.sleep(forTimeInterval: seconds) }

let stallSeconds = 0.24
private let stallMicroseconds = useconds_t(stallSeconds * 1e6)

/// Waits of planted stalls that ended early with EINTR.
let interruptions = Mutex(0)

private func note(_ result: Int) {
    if result < 0, errno == EINTR { interruptions.withLock { $0 += 1 } }
}

// MARK: Where it stalls. Each reads a clock last, so that the call before it is no tail call.

@inline(never) func sleepInVictim() -> Double {
    note(Int(usleep(stallMicroseconds)))
    return now()
}

@inline(never) func computeInVictim() -> Double {
    let end = now(CLOCK_THREAD_CPUTIME_ID) + stallSeconds
    var number: UInt32 = 1
    while now(CLOCK_THREAD_CPUTIME_ID) < end {
        for _ in 0..<5000 { number ^= number << 13; number ^= number >> 17; number ^= number << 5 }
    }
    return number == 0 ? 0 : now()
}

@inline(never) func readInVictim(_ socket: CInt) -> Double {
    var bytes = [UInt8](repeating: 0, count: 4)
    note(read(socket, &bytes, 4))
    return now()
}

@inline(never) func acceptInVictim(_ listener: CInt) -> Double {
    let connection = accept(listener, nil, nil)
    note(Int(connection))
    close(connection)
    return now()
}

nonisolated(unsafe) let mutex = {
    let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    pthread_mutex_init(mutex, nil)
    return mutex
}()

@inline(never) func lockInVictim() -> Double {
    pthread_mutex_lock(mutex)
    let ended = now()
    pthread_mutex_unlock(mutex)
    return ended
}

@inline(never) func keepMutexInVictim(_ isHeld: DispatchSemaphore) -> Double {
    pthread_mutex_lock(mutex)
    isHeld.signal()
    pause(stallSeconds)
    pthread_mutex_unlock(mutex)
    return now()
}

@inline(never) func calloutInVictim() -> Double {
    var time = timespec(tv_sec: 0, tv_nsec: Int(stallSeconds * 1e9))
    note(Int(nanosleep(&time, nil)))
    return now()
}

@inline(never) func taskInVictim() -> Double {
    note(Int(poll(nil, 0, CInt(stallSeconds * 1000))))
    return now()
}

@inline(never) func queueInVictim() -> Double {
    var time = timeval(tv_sec: 0, tv_usec: Int(stallMicroseconds))
    note(Int(select(0, nil, nil, nil, &time)))
    return now()
}

@inline(never) func waitToBeKilled() {
    while true { sleep(1000) }
}

@inline(never) func hangingTest() {
    let semaphore = DispatchSemaphore(value: 0)
    while true { semaphore.wait() }
}

// MARK: What stalls

struct Plant {
    var name: String
    var function: String
    var cause: String
    /// The function of the lock's holder.
    var holder = ""
    /// Stalls, after what it needs for that; the seconds of the stall, or why it is not possible here.
    var stall: (StallMonitor, _ name: String) -> Result<Double, Obstacle>

    struct Obstacle: Error { var reason: String }

    /// Prints `plant`, its name, function, cause, holder and seconds; or `untried`, its name and the reason.
    func play(_ monitor: StallMonitor) {
        switch stall(monitor, name) {
        case .success(let seconds):
            print("plant", name, function, cause, holder, seconds, separator: "\t")
        case .failure(let obstacle): print("untried", name, obstacle.reason, separator: "\t")
        }
    }
}

/// A stall of the calling thread, which is watched under the plant's name.
private func stallHere(
    _ monitor: StallMonitor, _ name: String, _ body: () -> Double
) -> Result<Double, Plant.Obstacle> {
    let thread = monitor.watchCurrentThread(as: name)
    thread.begin()
    let began = now()
    let ended = body()
    thread.end()
    return .success(ended - began)
}

/// A stall on another thread, which is waited for before it is read.
private final class Measured: @unchecked Sendable {
    var seconds = 0.0
}

private func inSeconds(_ seconds: Double, _ body: @escaping () -> Void) {
    Thread.detachNewThread {
        pause(seconds)
        body()
    }
}

private func stallAtPair(_ monitor: StallMonitor, _ name: String) -> Result<Double, Plant.Obstacle>
{
    var pair: [CInt] = [0, 0]
    guard socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &pair) == 0 else {
        return .failure(.init(reason: "socketpair: \(String(cString: strerror(errno)))"))
    }
    let (reader, writer) = (pair[0], pair[1])
    inSeconds(stallSeconds) { _ = write(writer, "word", 4) }
    return stallHere(monitor, name) { readInVictim(reader) }
}

private func stallAtListener(_ monitor: StallMonitor, _ name: String) -> Result<
    Double, Plant.Obstacle
> {
    let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    func connects() -> Bool {
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { place in
                bind(listener, place, size) == 0 && listen(listener, 4) == 0
                    && getsockname(listener, place, &size) == 0 && connectOnce(place, size)
            }
        }
    }
    guard connects() else {
        return .failure(.init(reason: "loopback: \(String(cString: strerror(errno)))"))
    }
    close(accept(listener, nil, nil))
    inSeconds(stallSeconds) { [address] in
        var address = address
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = connectOnce($0, size) }
        }
    }
    return stallHere(monitor, name) { acceptInVictim(listener) }
}

private func connectOnce(_ address: UnsafeMutablePointer<sockaddr>, _ size: socklen_t) -> Bool {
    let client = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    return connect(client, address, size) == 0
}

private func stallAtMutex(_ monitor: StallMonitor, _ name: String) -> Result<Double, Plant.Obstacle>
{
    let isHeld = DispatchSemaphore(value: 0)
    Thread.detachNewThread { _ = keepMutexInVictim(isHeld) }
    isHeld.wait()
    return stallHere(monitor, name, lockInVictim)
}

/// With short callouts before and after.
private func stallInLoop(_ monitor: StallMonitor, _ name: String) -> Result<Double, Plant.Obstacle>
{
    let stall = Measured()
    let isDone = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
        let loop = EventRunLoop.current
        monitor.watch(loop, as: name)
        loop.add(
            LoopTimer(after: .zero, every: .milliseconds(20)) { _ in usleep(5000) }, toMode: .common
        )
        loop.add(
            LoopTimer(after: .milliseconds(70)) { _ in
                let began = now()
                let ended = calloutInVictim()
                stall.seconds = ended - began
            }, toMode: .common)
        loop.add(
            LoopTimer(after: .milliseconds(400)) { _ in EventRunLoop.current.stop() },
            toMode: .common)
        loop.run()
        isDone.signal()
    }
    isDone.wait()
    return .success(stall.seconds)
}

private func stallInTask(_ monitor: StallMonitor, _ name: String) -> Result<Double, Plant.Obstacle>
{
    let stall = Measured()
    let isDone = DispatchSemaphore(value: 0)
    Task.detached {
        let began = now()
        let ended = taskInVictim()
        stall.seconds = ended - began
        isDone.signal()
    }
    isDone.wait()
    return .success(stall.seconds)
}

private func stallInQueue(_ monitor: StallMonitor, _ name: String) -> Result<Double, Plant.Obstacle>
{
    let stall = Measured()
    let queue = DispatchQueue(label: "victim")
    monitor.watch(queue, as: name)
    queue.async {
        let began = now()
        let ended = queueInVictim()
        stall.seconds = ended - began
    }
    queue.sync {}
    pause(0.05)
    return .success(stall.seconds)
}

let plants: [Plant] = [
    Plant(name: "sleep", function: "sleepInVictim()", cause: "sleep") {
        stallHere($0, $1, sleepInVictim)
    },
    Plant(name: "cpu", function: "computeInVictim()", cause: "cpu") {
        stallHere($0, $1, computeInVictim)
    },
    Plant(name: "ipc", function: "readInVictim(_:)", cause: "ipc", stall: stallAtPair),
    Plant(
        name: "network", function: "acceptInVictim(_:)", cause: "network", stall: stallAtListener),
    Plant(
        name: "lock", function: "lockInVictim()", cause: "lock", holder: "keepMutexInVictim(_:)",
        stall: stallAtMutex),
    Plant(name: "loop", function: "calloutInVictim()", cause: "sleep", stall: stallInLoop),
    Plant(name: "tasks", function: "taskInVictim()", cause: "sleep", stall: stallInTask),
    Plant(name: "queue", function: "queueInVictim()", cause: "sleep", stall: stallInQueue),
]
