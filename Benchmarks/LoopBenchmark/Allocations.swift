// Calls of malloc an operation in the steady state. Unlike times, counts are exact, so they are a gate.

internal import BenchmarkSupport
import CMinimalLoop
import Foundation
import StallModel
import StallRunLoop

extension Bench {
    /// Returns the names of operations that allocate more than they may.
    mutating func allocations() -> [String] {
        let limits: [(name: String, limit: Double, measure: () -> Double)] = [
            ("iteration with a source", 0, { onThread { countIterations() } }),
            ("post without a capture", 0, { onThread { countPosts() } }),
            ("post with a capture: its own", 1, { onThread { countCapturingPosts() } }),
            ("repeating timer call", 0, { onThread { countTimerCalls() } }),
            ("timer, add and remove", 0, { onThread { countAddsAndRemoves() } }),
            ("re-date", 0, { onThread { countRedates() } }),
            ("one-shot timer: itself", 1, { onThread { countOneShots() } }),
            ("descriptor event", 0, { onThread { countDescriptorEvents(.strict) } }),
            ("descriptor event, batch", 0, { onThread { countDescriptorEvents(.batch) } }),
        ]
        var failures: [String] = []
        for (name, limit, measure) in limits {
            let before = results.count
            compare(
                "allocations: " + name, unit: "a call",
                [Contestant(name: "EventRunLoop", measure: measure)])
            if results.count > before, results[before].median > limit + 0.01 {
                failures.append(
                    "\(name): \(results[before].median) allocations, at most \(limit) allowed")
            }
        }
        return failures
    }
}

private let steps = 10_000

/// Allocations a step of what `body` runs after a warm-up.
private func perStep(_ body: (Int) -> Void) -> Double {
    body(steps)
    let before = minimal_allocations()
    body(steps)
    return Double(minimal_allocations() - before) / Double(steps)
}

private func countIterations() -> Double {
    let loop = EventRunLoop.current
    nonisolated(unsafe) var left = 0
    let source = LoopSource { source in
        left -= 1
        if left > 0 { source.signal() } else { loop.stop() }
    }
    loop.add(source, toMode: .default)
    return perStep { count in
        left = count
        source.signal()
        loop.run()
    }
}

private nonisolated(unsafe) var runs = 0

private func countPosts() -> Double {
    let loop = EventRunLoop.current
    loop.add(LoopSource { _ in }, toMode: .default)
    return perStep { count in
        for _ in 0..<count / 10 {
            for _ in 0..<10 { loop.post { runs += 1 } }
            loop.run(for: .zero)
        }
    }
}

private func countCapturingPosts() -> Double {
    let loop = EventRunLoop.current
    loop.add(LoopSource { _ in }, toMode: .default)
    return perStep { count in
        for number in 0..<count / 10 {
            for _ in 0..<10 { loop.post { runs += number } }
            loop.run(for: .zero)
        }
    }
}

private func countAddsAndRemoves() -> Double {
    let loop = EventRunLoop.current
    let timer = LoopTimer(after: .seconds(1_000)) { _ in }
    return perStep { count in
        for _ in 0..<count {
            loop.add(timer, toMode: .default)
            loop.remove(timer, fromMode: .default)
        }
    }
}

private func countTimerCalls() -> Double {
    let loop = EventRunLoop.current
    nonisolated(unsafe) var left = 0
    loop.schedule(every: .nanoseconds(1)) { _ in
        left -= 1
        if left == 0 { loop.stop() }
    }
    return perStep { count in
        left = count
        loop.run()
    }
}

private func countRedates() -> Double {
    let loop = EventRunLoop.current
    let timer = LoopTimer(after: .seconds(1_000)) { _ in }
    loop.add(timer, toMode: .default)
    let far = timer.nextFire
    return perStep { count in
        for number in 0..<count { timer.nextFire = far + .nanoseconds(number) }
    }
}

private func countOneShots() -> Double {
    let loop = EventRunLoop.current
    return perStep { count in
        for _ in 0..<count {
            loop.add(LoopTimer(after: .seconds(1_000)) { _ in runs += 1 }, toMode: .default)
        }
    }
}

private func countDescriptorEvents(_ delivery: EventRunLoop.DescriptorDelivery) -> Double {
    let loop = EventRunLoop.current
    loop.descriptorDelivery = delivery
    let descriptor = minimal_eventfd()
    nonisolated(unsafe) var left = 0
    var one: UInt64 = 1
    _ = write(descriptor, &one, 8)
    let source = DescriptorSource(descriptor: descriptor) { _, _ in
        left -= 1
        if left == 0 { loop.stop() }
    }
    _ = try? loop.add(source, toMode: .default)
    defer {
        source.invalidate()
        close(descriptor)
    }
    return perStep { count in
        left = count
        loop.run()
    }
}
