// Runs one scenario of a watch target, for tests that count the reports in its store afterwards.
//
//     TargetFixture SCENARIO STORE        every threshold is 200 ms, every planned stall 500 ms

import Foundation
import StallAgent

@inline(never) func plannedStall() { usleep(500_000) }
@inline(never) func plannedWork() { usleep(2_000) }

let scenarios: [String: @Sendable (StallMonitor) async -> Void] = [
    "queue-async": queueAsync, "queue-sync": queueSync, "queue-target": queueTarget,
    "queue-backlog": queueBacklog, "queue-suspended": queueSuspended, "queue-idle": queueIdle,
    "queue-let-go": queueLetGo, "queue-barrier": queueBarrier,
    "pool-exhausted": poolExhausted, "pool-busy": poolBusy,
    "mode-idle": modeIdle, "mode-busy": modeBusy, "mode-stall": modeStall,
    "loop-of-thread": loopOfThread,
    "systemd": systemd, "marks": marks, "thread-ends": threadEnds, "main-blocked": mainBlocked,
]

@main
struct TargetFixture {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3,
            let play = scenarios[arguments[1]] ?? taskScenarios[arguments[1]]
                ?? poolScenarios[arguments[1]]
        else {
            fatalError("usage: TargetFixture SCENARIO STORE")
        }
        let monitor = try StallMonitor.start(
            .init(
                app: "targets", version: "1", store: arguments[2], threshold: .milliseconds(200)))
        await play(monitor)
        monitor.stop()
        print("done")
    }
}

func pause(_ seconds: Double) { usleep(UInt32(seconds * 1_000_000)) }

/// Runs `body` on a thread of its own and waits for its end.
func onThread(_ body: @escaping @Sendable () -> Void) {
    let isDone = DispatchSemaphore(value: 0)
    Thread {
        body()
        isDone.signal()
    }.start()
    isDone.wait()
}

// MARK: Queues

@Sendable func queueAsync(_ monitor: StallMonitor) async {
    let queue = DispatchQueue(label: "albums")
    monitor.watch(queue, as: "albums")
    pause(0.5)
    queue.async { plannedStall() }
    pause(1)
}

/// `sync` runs on the calling thread: that is the stalled one, no worker.
@Sendable func queueSync(_ monitor: StallMonitor) async {
    let queue = DispatchQueue(label: "albums")
    monitor.watch(queue, as: "albums")
    pause(0.3)
    onThread { queue.sync { plannedStall() } }
    pause(0.3)
}

/// The queue itself runs nothing: its target runs another queue's item.
@Sendable func queueTarget(_ monitor: StallMonitor) async {
    let target = DispatchQueue(label: "disk")
    let (albums, thumbnails) = (
        DispatchQueue(label: "albums", target: target),
        DispatchQueue(label: "thumbnails", target: target)
    )
    monitor.watch(albums, as: "albums")
    pause(0.3)
    thumbnails.async { plannedStall() }
    albums.async { plannedWork() }
    pause(1)
}

/// A long list of short items delays the last one by a second, and none of them stalls.
@Sendable func queueBacklog(_ monitor: StallMonitor) async {
    let queue = DispatchQueue(label: "albums")
    monitor.watch(queue, as: "albums")
    pause(0.3)
    for _ in 0..<400 { queue.async { plannedWork() } }
    queue.sync {}
    pause(0.3)
}

@Sendable func queueSuspended(_ monitor: StallMonitor) async {
    let (queue, inactive) = (
        DispatchQueue(label: "albums"),
        DispatchQueue(label: "later", attributes: .initiallyInactive)
    )
    monitor.watch(queue, as: "albums")
    monitor.watch(inactive, as: "later")
    queue.suspend()
    for queue in [queue, inactive] { queue.async { plannedWork() } }
    pause(1)
    queue.resume()
    inactive.activate()
    pause(0.3)
}

@Sendable func queueIdle(_ monitor: StallMonitor) async {
    let queue = DispatchQueue(label: "albums")
    monitor.watch(queue, as: "albums")
    monitor.watchCooperativePool()
    for _ in 0..<50 {
        queue.async { plannedWork() }
        try? await Task.sleep(for: .milliseconds(40))
    }
}

/// The monitor does not keep a queue alive. Says whether it went.
@Sendable func queueLetGo(_ monitor: StallMonitor) async {
    final class Tracer: Sendable {
        deinit { print("let go") }
    }
    do {
        let key = DispatchSpecificKey<Tracer>()
        let queue = DispatchQueue(label: "albums")
        queue.setSpecific(key: key, value: Tracer())
        monitor.watch(queue, as: "albums")
        queue.async { plannedWork() }
        pause(0.3)
    }
    pause(0.5)
}

@Sendable func queueBarrier(_ monitor: StallMonitor) async {
    let queue = DispatchQueue(label: "albums", attributes: .concurrent)
    monitor.watch(queue, as: "albums")
    pause(0.3)
    queue.async { pause(0.6) }  // shares the queue: no stall of it
    pause(0.8)
    queue.async(flags: .barrier) { plannedStall() }
    pause(0.8)
}

// MARK: The pool

@Sendable func poolExhausted(_ monitor: StallMonitor) async {
    monitor.watchCooperativePool()
    try? await Task.sleep(for: .milliseconds(300))
    await withTaskGroup(of: Void.self) { group in
        for _ in 0..<ProcessInfo.processInfo.activeProcessorCount {
            group.addTask { plannedStall() }
        }
        pause(0.05)
        group.addTask { plannedWork() }  // waits for a thread
    }
    try? await Task.sleep(for: .milliseconds(300))
}

/// More tasks than threads, but each of them returns in time.
@Sendable func poolBusy(_ monitor: StallMonitor) async {
    monitor.watchCooperativePool()
    await withTaskGroup(of: Void.self) { group in
        for _ in 0..<1000 { group.addTask { plannedWork() } }
    }
}

// MARK: Foundation's run loops

/// Foundation's `Timer(timeInterval:repeats:)` fires at once on Linux.
func timer(after seconds: Double, _ body: @escaping @Sendable (Timer) -> Void) -> Timer {
    Timer(fire: Date(timeIntervalSinceNow: seconds), interval: 0, repeats: false, block: body)
}

/// A loop that sleeps in a custom mode, inside of a callout: no observer reports that it waits.
@Sendable func modeIdle(_ monitor: StallMonitor) async {
    onThread {
        monitor.watch(RunLoop.current, as: "loop")
        runInPrivateMode { runPrivateMode(for: 1) }
    }
}

/// A loop in such a mode that never sleeps and never stalls.
@Sendable func modeBusy(_ monitor: StallMonitor) async {
    onThread {
        monitor.watch(RunLoop.current, as: "loop")
        runInPrivateMode {
            let timer = Timer(timeInterval: 0.0001, repeats: true) { _ in plannedWork() }
            RunLoop.current.add(timer, forMode: privateMode)
            runPrivateMode(for: 1)
        }
    }
}

@Sendable func modeStall(_ monitor: StallMonitor) async {
    onThread {
        monitor.watch(RunLoop.current, as: "loop")
        runInPrivateMode {
            let timer = timer(after: 0.5) { _ in plannedStall() }
            RunLoop.current.add(timer, forMode: privateMode)
            runPrivateMode(for: 1.3)
        }
    }
}

let privateMode = RunLoop.Mode("modal")

/// Calls `body` from a timer in the default mode.
func runInPrivateMode(_ body: @escaping @Sendable () -> Void) {
    RunLoop.current.add(timer(after: 0.05) { _ in body() }, forMode: .default)
    _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.4))
}

func runPrivateMode(for seconds: Double) {
    RunLoop.current.add(timer(after: 100) { _ in }, forMode: privateMode)
    let end = Date(timeIntervalSinceNow: seconds)
    while Date() < end { _ = RunLoop.current.run(mode: privateMode, before: end) }
}

/// The loop of a thread, watched from another one. Its thread ends while it is watched.
@Sendable func loopOfThread(_ monitor: StallMonitor) async {
    nonisolated(unsafe) var loop: RunLoop?
    let isReady = DispatchSemaphore(value: 0)
    Thread {
        loop = RunLoop.current
        let stall = timer(after: 0.5) { _ in plannedStall() }
        RunLoop.current.add(stall, forMode: .default)
        RunLoop.current.add(timer(after: 100) { _ in }, forMode: .default)
        isReady.signal()
        RunLoop.current.run(until: Date(timeIntervalSinceNow: 1.3))
    }.start()
    isReady.wait()
    monitor.watch(loop!, as: "loop")
    pause(2)
}

// MARK: Marked threads

/// One stall between marks; misuse around it.
@Sendable func marks(_ monitor: StallMonitor) async {
    onThread {
        let thread = monitor.watchCurrentThread(as: "decoder")
        thread.end()
        thread.begin()
        thread.begin()
        plannedStall()
        thread.end()
        thread.end()
        thread.end()
        pause(0.4)  // nothing is expected now
        onThread {
            thread.begin()  // not its thread
            pause(0.4)
        }
        for _ in 0..<100 {
            thread.begin()
            plannedWork()
            thread.end()
        }
    }
}

/// A thread that ends during its work is not stalled forever.
@Sendable func threadEnds(_ monitor: StallMonitor) async {
    nonisolated(unsafe) var thread: WatchedThread?
    onThread {
        thread = monitor.watchCurrentThread(as: "decoder")
        thread?.begin()
    }
    pause(1)
    _ = thread
}

/// The main queue never comes back, and the monitor stops all the same.
@Sendable func mainBlocked(_ monitor: StallMonitor) async {
    monitor.watch(DispatchQueue.main, as: "main-queue")
    monitor.watchMainActor()
    try? await Task.sleep(for: .milliseconds(300))
    Task.detached {
        try? await Task.sleep(for: .milliseconds(600))
        monitor.stop()
        print("done")
        exit(0)
    }
    await MainActor.run { while true { sleep(1000) } }
}

// MARK: Outside

/// Listens where systemd would, and says what came while all was well, in a stall of two deadlines, and after it.
@Sendable func systemd(_ monitor: StallMonitor) async {
    let path = CommandLine.arguments[2] + ".notify"
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | O_NONBLOCK, 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let isBound = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
        }
    }
    guard isBound else { return print("no socket") }
    @Sendable func messages() -> [String] {
        var all: [String] = []
        var bytes = [UInt8](repeating: 0, count: 256)
        while case let count = read(descriptor, &bytes, 256), count > 0 {
            all.append(String(decoding: bytes[..<count], as: UTF8.self))
        }
        return all
    }
    print("asked: \(monitor.notifiesSystemd())")
    setenv("NOTIFY_SOCKET", path, 1)
    setenv("WATCHDOG_USEC", "400000", 1)
    onThread {
        let thread = monitor.watchCurrentThread(as: "decoder")
        print("asked: \(monitor.notifiesSystemd())")
        pause(1)
        let healthy = messages()
        print(
            "ready \(healthy.first == "READY=1"), alive \(healthy.count { $0 == "WATCHDOG=1" } > 2)"
        )
        thread.begin()
        pause(0.3)
        _ = messages()
        pause(0.8)
        print("in the stall \(messages().count)")
        thread.end()
        pause(0.5)
        print("after it \(messages().contains("WATCHDOG=1"))")
        monitor.stop()
        print("at the end \(messages().last ?? "nothing")")
    }
}
