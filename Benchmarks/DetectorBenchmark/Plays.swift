// The loads, on real threads with real sleeps: what an app would pay.

import CLinux
import Foundation
import StallAgent
import StallRunLoop

/// Iterations of a loop, with their price in CPU time of its own thread and of all others.
func iterate(
    _ count: Int, _ watch: Watch, work: (EventRunLoop, Int) -> Void
) -> [(String, Double)] {
    let loop = EventRunLoop.current
    watch.watch(loop, as: "bench")
    work(loop, count / 10)
    let before = Usage.now()
    work(loop, count)
    let used = Usage.now() - before
    return [
        ("perIteration", used.thread / Double(count) * 1e9),
        ("monitorCPU", (used.process - used.thread) / used.wall * 100),
        ("switches", used.switches / used.wall),
    ]
}

/// The same loop with and without a wake-up word, a hundred times, alternating every `count` iterations. A loop without
/// one is not watched: it counts nothing and wakes no watchdog.
func iterateInTurns(
    _ count: Int, _ watch: Watch, work: (EventRunLoop, Int) -> Void
) -> [(String, Double)] {
    let loop = EventRunLoop.current
    watch.watch(loop, as: "bench")
    work(loop, count)
    // The watchdog starts on its own thread.
    while loop.beacon.pointee.wakeup == nil { usleep(1000) }
    let wakeup = loop.beacon.pointee.wakeup
    func turn(_ wakeup: UnsafeMutablePointer<stall_wakeup>?) -> Double {
        stall_beacon_set_wakeup(loop.beacon, wakeup)
        let before = Usage.now()
        work(loop, count)
        return (Usage.now() - before).thread / Double(count) * 1e9
    }
    var (unwatched, watched, added): ([Double], [Double], [Double]) = ([], [], [])
    for round in 0..<100 {
        let isFirst = round.isMultiple(of: 2)
        let (one, other) = (turn(isFirst ? wakeup : nil), turn(isFirst ? nil : wakeup))
        watched.append(isFirst ? one : other)
        unwatched.append(isFirst ? other : one)
        added.append(watched[round] - unwatched[round])
    }
    stall_beacon_set_wakeup(loop.beacon, wakeup)
    func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
    return [
        ("unwatched", median(unwatched)), ("watched", median(watched)), ("added", median(added)),
    ]
}

func wakeThroughDescriptor(_ loop: EventRunLoop, _ count: Int) {
    var ends: [CInt] = [0, 0]
    precondition(pipe(&ends) == 0)
    var (left, byte) = (count, UInt8(0))
    let source = DescriptorSource(descriptor: ends[0]) { _, _ in
        read(ends[0], &byte, 1)
        left -= 1
        if left > 0 { write(ends[1], &byte, 1) } else { loop.stop() }
    }
    _ = try? loop.add(source, toMode: .common)
    write(ends[1], &byte, 1)
    loop.run()
    source.invalidate()
    for end in ends { close(end) }
}

func signalItself(_ loop: EventRunLoop, _ count: Int) {
    var left = count
    let source = LoopSource { source in
        left -= 1
        if left > 0 { source.signal() } else { loop.stop() }
    }
    loop.add(source, toMode: .common)
    source.signal()
    loop.run(for: .seconds(1_000))
    source.invalidate()
}

/// The words that an iteration with one callout writes, with the clock readings for them.
func publish(_ count: Int) -> [(String, Double)] {
    guard let beacon = stall_beacon_create() else { return [] }
    defer { stall_beacon_release(beacon) }
    func nanoseconds(_ iteration: () -> Void) -> Double {
        let before = Usage.now()
        for _ in 0..<count { iteration() }
        return (Usage.now() - before).thread / Double(count) * 1e9
    }
    return [
        (
            "pollPath",
            nanoseconds {
                stall_beacon_publish_iteration(beacon, 1)
                stall_beacon_publish_callout(beacon, 3)
                stall_beacon_publish_callout(beacon, 0)
            }
        ),
        (
            "sleepPath",
            nanoseconds {
                stall_beacon_publish_iteration(beacon, 1)
                stall_beacon_publish(beacon, UInt8(STALL_LOOP_WAITING), 2)
                stall_beacon_publish_awake(beacon, 3)
                stall_beacon_publish_callout(beacon, 3)
                stall_beacon_publish_callout(beacon, 0)
            }
        ),
        ("clock", nanoseconds { _ = stall_monotonic_ns() }),
    ]
}

/// A loop with nothing to do but its end: how often is the watcher awake?
func stayIdle(for seconds: Int, _ watch: Watch) -> [(String, Double)] {
    let loop = EventRunLoop.current
    watch.watch(loop, as: "bench")
    loop.run(for: .milliseconds(700))
    let before = Usage.now()
    loop.run(for: .seconds(seconds))
    let used = Usage.now() - before
    // Two of the switches are the main thread's own sleep and its end.
    return [
        ("wakeUps", max(0, used.switches - 2) / used.wall),
        ("monitorCPU", (used.process - used.thread) / used.wall * 100),
    ]
}

/// Stalls of 300 to 600 ms, or of 1.1 to 2 s for a watcher with a poll interval of a second, at varying times.
func stall(times: Int, _ watch: Watch) -> [(String, Double)] {
    let loop = EventRunLoop.current
    watch.watch(loop, as: "bench")
    for number in 0..<times {
        let length = watch.threshold * (1.2 + Double(number * 7 % 12) / 12)
        loop.add(
            LoopTimer(after: .milliseconds(113 + number * 17)) { _ in
                usleep(UInt32(length / .microseconds(1)))
                loop.stop()
            }, toMode: .common)
        loop.run()
    }
    loop.run(for: .milliseconds(200))
    return results(of: watch, expected: times)
}

/// Loops that are busy in an ordinary way; each stalls by itself, then all of them at once.
func stallMany(loops count: Int, _ watch: Watch) -> [(String, Double)] {
    let threads = (0..<count).compactMap { try? LoopThread(name: "loop \($0)") }
    for (number, thread) in threads.enumerated() {
        try? thread.submit {
            let loop = EventRunLoop.current
            watch.watch(loop, as: "loop \(number)")
            loop.add(LoopTimer(after: .zero, every: .milliseconds(10)) { _ in }, toMode: .common)
        }
    }
    usleep(500_000)
    let cpu = watchdogSeconds()
    sleep(3)
    let busyCPU = (watchdogSeconds() - cpu) / 3 * 100
    for thread in threads {
        try? thread.submit { usleep(400_000) }
        usleep(10_000)
    }
    usleep(600_000)
    for thread in threads { try? thread.submit { usleep(400_000) } }
    sleep(1)
    for thread in threads { thread.stop() }
    return [("busyCPU", busyCPU)] + results(of: watch, expected: 2 * count)
}

private func results(of watch: Watch, expected: Int) -> [(String, Double)] {
    let delays = watch.allNoticed().map { $0.delay / .milliseconds(1) }.sorted()
    func quantile(_ share: Double) -> Double {
        delays.isEmpty ? .nan : delays[min(delays.count - 1, Int(share * Double(delays.count)))]
    }
    return [
        ("found", Double(delays.count)), ("missed", Double(expected - delays.count)),
        ("error50", quantile(0.5)), ("error99", quantile(0.99)), ("errorMax", quantile(1)),
    ]
}
