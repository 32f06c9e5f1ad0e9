// Ten million iterations, a million timers and a million posts on one loop: threads, descriptors and memory must not grow.

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

/// Plays each part once, notes what the process holds, and plays it again. Returns false when something has grown.
func endure() -> Bool {
    var isSteady = true
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
            let before = Holdings()
            part()
            let after = Holdings()
            let grew =
                after.threads > before.threads || after.descriptors > before.descriptors
                || after.residentKiB > before.residentKiB + 1_024
            print("\(name): \(before) before, \(after) after\(grew ? "  GREW" : "")")
            isSteady = isSteady && !grew
        }
    }
    return isSteady
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
