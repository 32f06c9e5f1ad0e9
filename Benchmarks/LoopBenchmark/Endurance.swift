// Floods and ended loops leak nothing: ten million iterations, a million timers and a million posts on one loop do not
// increase the number of threads and descriptors, or the memory.

import CMinimalLoop
import Foundation
import StallModel
import StallRunLoop

/// What a process holds.
struct Holdings {
    let threads: Int
    let descriptors: Int
    let residentKiB: Int

    init() {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        func field(_ name: String) -> Int {
            status.split(separator: "\n").first { $0.hasPrefix(name) }
                .flatMap { Int($0.filter(\.isNumber)) } ?? -1
        }
        threads = field("Threads:")
        residentKiB = field("VmRSS:")
        descriptors =
            (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? -1
    }
}

extension Holdings: CustomStringConvertible {
    var description: String { "\(threads) threads, \(descriptors) descriptors, \(residentKiB) KiB" }
}

/// Runs parts that must leak nothing, then others twice, and compares the process's resources between the two. Returns
/// false if something has grown.
func endure() -> Bool {
    var isSteady = true
    guard let thread = try? LoopThread(name: "flooded") else { return false }
    let passing: [(String, () -> Void)] = [
        ("10,000 loops that their handlers hold", { for _ in 0..<10_000 { onThread(holdLoop) } }),
        ("10 million posts at once", { postAtOnce(to: thread, 10_000_000) }),
    ]
    // Threads, and what Swift makes at first use.
    for _ in 0..<10 { onThread(holdLoop) }
    postAtOnce(to: thread, 1_000)
    for (name, part) in passing {
        let before = Holdings()
        part()
        let after = Holdings()
        let isLeft =
            after.threads > before.threads || after.descriptors > before.descriptors
            || after.residentKiB > before.residentKiB + 10_240
        print("\(name): \(before) before, \(after) after\(isLeft ? "  LEFT" : "")")
        isSteady = isSteady && !isLeft
    }
    onThread {
        let loop = EventRunLoop.current
        let parts: [(String, () -> Void)] = [
            ("10 million iterations", { iterate(loop, 10_000_000) }),
            ("1 million timers", { setTimers(loop, 1_000_000) }),
            ("1 million posts", { postBatches(loop, 1_000_000) }),
            ("1,000 runs with a timeout", { for _ in 0..<1_000 { runBriefly(loop) } }),
            (
                "1,000 threads with a loop",
                { for _ in 0..<1_000 { onThread { runBriefly(.current) } } }
            ),
        ]
        for (name, part) in parts {
            part()
            isSteady = isSteadyAgain(name, part) && isSteady
        }
    }
    return isSteady
}

/// Repeats a part until a run leaks nothing, at most five times. malloc takes large arrays from the system at first and
/// from its own heap once they were freed, so the first runs may increase memory. A leak increases it every time.
private func isSteadyAgain(_ name: String, _ part: () -> Void) -> Bool {
    for play in 1...5 {
        let before = Holdings()
        part()
        let after = Holdings()
        let grew =
            after.threads > before.threads || after.descriptors > before.descriptors
            || after.residentKiB > before.residentKiB + 1_024
        let verdict = !grew ? "" : play < 5 ? "  once more" : "  GREW"
        print("\(name): \(before) before, \(after) after\(verdict)")
        if !grew { return true }
    }
    return false
}

private let watched = minimal_eventfd()

/// A loop with an item of each kind, in the default and the common modes, whose handlers hold it.
private func holdLoop() {
    let loop = EventRunLoop.current
    for mode in [LoopMode.default, .common] {
        loop.schedule(every: .seconds(60), inMode: mode) { _ in _ = loop }
        loop.add(LoopSource { _ in _ = loop }, toMode: mode)
        loop.add(LoopObserver { _, _ in _ = loop }, toMode: mode)
        _ = try? loop.add(DescriptorSource(descriptor: watched) { _, _ in _ = loop }, toMode: mode)
    }
    loop.perform(inMode: "never run") { _ = loop }
    loop.run(for: .zero)
}

/// All while the thread's loop is prevented from running. The thread lives on.
private func postAtOnce(to thread: LoopThread, _ count: Int) {
    nonisolated(unsafe) var ran = 0
    let counted: @Sendable () -> Void = { ran += 1 }
    let gate = DispatchSemaphore(value: 0)
    thread.loop.post { gate.wait() }
    for _ in 0..<count { thread.loop.post(counted) }
    gate.signal()
    try? thread.loop.performAndWait {}
    precondition(ran == count)
}

private func iterate(_ loop: EventRunLoop, _ count: Int) {
    var left = count
    let source = LoopSource { source in
        left -= 1
        if left > 0 { source.signal() } else { loop.stop() }
    }
    loop.add(source, toMode: .default)
    source.signal()
    loop.run()
    source.invalidate()
}

private func setTimers(_ loop: EventRunLoop, _ count: Int) {
    nonisolated(unsafe) var fired = 0
    for number in 0..<count {
        let delay: Duration = number.isMultiple(of: 2) ? .zero : .seconds(1_000)
        let timer = LoopTimer(after: delay) { _ in fired += 1 }
        loop.add(timer, toMode: .default)
        if !number.isMultiple(of: 2) { timer.invalidate() }
    }
    while fired < count / 2 { loop.run(for: .zero) }
}

private func postBatches(_ loop: EventRunLoop, _ count: Int) {
    var ran = 0
    nonisolated(unsafe) let counted: () -> Void = { ran += 1 }
    for _ in 0..<count / 1_000 {
        for _ in 0..<1_000 { loop.post { counted() } }
        loop.run(for: .zero)
    }
}

private func runBriefly(_ loop: EventRunLoop) {
    let keep = LoopSource { _ in }
    loop.add(keep, toMode: .default)
    loop.run(for: .microseconds(10))
    keep.invalidate()
}
