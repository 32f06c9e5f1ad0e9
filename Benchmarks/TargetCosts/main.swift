// What watching costs an app that is idle, one that is busy, and one that marks its work, target by target.
//
//     TargetCosts [SECONDS]       how long each idle target is watched; 10 by default

import Foundation
import StallAgent

let seconds = CommandLine.arguments.dropFirst().first.flatMap(Double.init) ?? 10

/// Voluntary context switches of all threads of this process: each one is a thread that went to sleep after being woken.
func switches() -> Int {
    let tasks = "/proc/self/task"
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
    return threads.reduce(0) { sum, thread in
        let status =
            (try? String(contentsOfFile: "\(tasks)/\(thread)/status", encoding: .utf8)) ?? ""
        return sum
            + (status.firstMatch(of: /\nvoluntary_ctxt_switches:\s+(\d+)/).flatMap { Int($0.1) }
                ?? 0)
    }
}

func cpuNanoseconds() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

func startMonitor() throws -> StallMonitor {
    try .start(.init(app: "costs", version: "1", store: "/tmp/stallwatch-costs-\(getpid()).sqlite"))
}

func measureIdle(_ name: String, _ watch: (StallMonitor) -> Void) throws {
    let monitor = try startMonitor()
    watch(monitor)
    usleep(1_500_000)  // it settles
    let (before, cpu) = (switches(), cpuNanoseconds())
    usleep(UInt32(seconds * 1_000_000))
    let (used, wakes) = (cpuNanoseconds() - cpu, switches() - before - 1)
    monitor.stop()
    let share = Double(used) / (seconds * 1_000_000_000) * 100
    print(
        name.padding(toLength: 30, withPad: " ", startingAt: 0),
        String(format: "%6.1f wake-ups/s   %.3f %% CPU", Double(wakes) / seconds, share))
}

/// Nanoseconds of one item of a queue that is never empty.
func itemCost(_ count: Int) -> Double {
    let queue = DispatchQueue(label: "items")
    let monitor = isWatching ? try? startMonitor() : nil
    monitor?.watch(queue, as: "items")
    let done = DispatchSemaphore(value: 0)
    let began = ContinuousClock.now
    for _ in 0..<count { queue.async {} }
    queue.async { done.signal() }
    done.wait()
    let took = began.duration(to: .now)
    monitor?.stop()
    return took / .nanoseconds(1) / Double(count)
}
nonisolated(unsafe) var isWatching = false

actor Counter {
    var count = 0
    func add() { count += 1 }
}

/// Nanoseconds of one job: eight tasks that add to an actor and yield.
func jobCost(_ rounds: Int) -> Double {
    let monitor = isWatching ? try? startMonitor() : nil
    monitor?.watchTasks()
    usleep(100_000)  // it settles
    let (done, counter) = (DispatchSemaphore(value: 0), Counter())
    let began = ContinuousClock.now
    Task.detached {
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<rounds {
                        await counter.add()
                        await Task.yield()
                    }
                }
            }
        }
        done.signal()
    }
    done.wait()
    let took = began.duration(to: .now)
    monitor?.stop()
    return took / .nanoseconds(1) / Double(8 * rounds)
}

/// The medians of ten runs each, in turns.
func alternate(_ cost: () -> Double) -> (without: Double, with: Double) {
    var costs: [Bool: [Double]] = [:]
    for round in 0..<20 {
        isWatching = round % 2 == 1
        costs[isWatching, default: []].append(cost())
    }
    return (costs[false]!.sorted()[5], costs[true]!.sorted()[5])
}

func measureMarks() throws {
    let monitor = try startMonitor()
    let thread = monitor.watchCurrentThread(as: "marks")
    let rounds = 2_000_000
    let took = ContinuousClock().measure {
        for _ in 0..<rounds {
            thread.begin()
            thread.end()
        }
    }
    monitor.stop()
    print(
        String(
            format: "begin and end, together:       %.0f ns",
            took / .nanoseconds(1) / Double(rounds)))
}

Thread {
    do {
        print("idle, threshold 250 ms")
        try measureIdle("agent alone") { _ in }
        try measureIdle("RunLoop.main") { $0.watchMainRunLoop() }
        let queues = (0..<8).map { DispatchQueue(label: "queue \($0)") }
        try measureIdle("one queue") { $0.watch(queues[0], as: "one") }
        try measureIdle("eight queues") { monitor in
            for queue in queues { monitor.watch(queue, as: queue.label) }
        }
        try measureIdle("DispatchQueue.main") { $0.watch(DispatchQueue.main, as: "main-queue") }
        try measureIdle("MainActor") { $0.watchMainActor() }
        try measureIdle("cooperative pool") { $0.watchCooperativePool() }
        try measureIdle("jobs of tasks") { $0.watchTasks() }
        print("busy")
        var costs: [Bool: [Double]] = [:]
        for round in 0..<10 {
            isWatching = round % 2 == 1
            costs[isWatching, default: []].append(itemCost(1_000_000))
        }
        let (without, with) = (costs[false]!.min()!, costs[true]!.min()!)
        print(
            String(format: "an item of a busy queue:       %.0f ns, watched %.0f ns", without, with)
        )
        let job = alternate { jobCost(50_000) }
        print(
            String(
                format: "a job of a task:               %.0f ns, watched %.0f ns", job.without,
                job.with))
        try measureMarks()
    } catch { print(error) }
    exit(0)
}.start()
RunLoop.main.run()
