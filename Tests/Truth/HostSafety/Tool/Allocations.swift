// Proves that the watchdog neither allocates nor frees while stalls are detected, sampled, refreshed and ended.

import CHostSafety
import Foundation
import StallAgent
import StallRunLoop

/// Runs stalls of every kind under a counting malloc. Prints one line; returns whether the count is zero.
func countAllocations(_ directory: String) throws -> Bool {
    var configuration = StallMonitor.Configuration(app: "allocations", version: "1")
    configuration.store = directory + "/allocations.sqlite"
    configuration.threshold = .milliseconds(60)
    configuration.threads = .all
    configuration.callbackDeadline = .seconds(1)
    let monitor = try StallMonitor.start(configuration)
    let loop = EventRunLoop.main
    monitor.watch(loop, as: "main")
    monitor.watchCooperativePool()
    let queue = DispatchQueue(label: "work")
    monitor.watch(queue, as: "work")
    let lock = NSLock()
    let marked = monitor.watchCurrentThread(as: "marked")
    // Requests are handled before counting, because preparing a loop allocates.
    usleep(400_000)
    host_count_heap("stall-watchdog")
    runOnce(loop) { monitor.withActivity("sleeps") { _ = usleep(150_000) } }
    marked.begin()
    monitor.withActivity("computes") { host_spin(200_000_000) }
    marked.end()
    // A lock, so that its holder is captured.
    let holder = Thread { lock.withLock { _ = usleep(300_000) } }
    holder.start()
    usleep(20_000)
    runOnce(loop) { monitor.withActivity("waits for a lock") { lock.withLock {} } }
    runOnce(loop) { monitor.withActivity("lasts") { _ = usleep(1_500_000) } }
    // Descriptors, a poll, and a queue's item.
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    let end = ends[0]
    runOnce(loop) {
        monitor.withActivity("polls") {
            var polled = pollfd(fd: end, events: Int16(POLLIN), revents: 0)
            _ = poll(&polled, 1, 200)
        }
    }
    queue.sync { _ = usleep(200_000) }
    for _ in 0..<8 { Task.detached { _ = usleep(250_000) } }
    usleep(500_000)
    host_count_heap(nil)
    var (allocated, freed) = (host_heap_allocations(), host_heap_frees())
    // Jobs of tasks, that hold all threads at last. Threads that run some are known before.
    usleep(600_000)
    monitor.watchTasks()
    usleep(100_000)
    for _ in 0..<8 { Task.detached { _ = usleep(30_000) } }
    usleep(400_000)
    host_count_heap("stall-watchdog")
    for _ in 0..<8 {
        Task.detached { await monitor.withTaskActivity("task") { _ = usleep(150_000) } }
    }
    usleep(900_000)
    host_count_heap(nil)
    allocated += host_heap_allocations()
    freed += host_heap_frees()
    let flushed = monitor.stop(within: .seconds(20))
    print(
        "watchdog allocations=\(allocated) frees=\(freed) flushed=\(flushed ? 1 : 0)")
    return allocated == 0 && freed == 0 && flushed
}

/// Runs a block as one callout of the loop.
func runOnce(_ loop: EventRunLoop, _ body: @escaping @Sendable () -> Void) {
    loop.perform(body)
    _ = loop.run(mode: .default, for: .milliseconds(1), returnAfterSourceHandled: true)
}
