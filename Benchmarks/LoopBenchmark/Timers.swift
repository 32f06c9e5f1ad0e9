// Timers: insert, cancel, fire and re-date with many pending. CFRunLoop keeps them in a sorted array, so it does fewer operations
// at the large sizes; a full round would take minutes.

import CMinimalLoop
import CoreFoundation
import Foundation
import StallModel
import StallRunLoop

extension Bench {
    mutating func timers() {
        for size in [10, 1_000, 100_000, 1_000_000] {
            let size32 = UInt32(size)
            let repeats = max(1, 2_000 / size)
            func perTimer(_ total: () -> UInt64) -> Double {
                Double((0..<repeats).reduce(UInt64(0)) { sum, _ in sum + total() })
                    / Double(size * repeats)
            }
            func ours(_ phase: TimerPhase) -> Double {
                // The second pass: a loop keeps its buffers, and the floor gets its own for nothing.
                perTimer {
                    onThread {
                        _ = playTimers(size, phase)
                        return playTimers(size, phase)
                    }
                }
            }
            let withCF = size <= 100_000
            compare(
                "timer insert", size: size,
                [
                    Contestant(name: "C floor") { perTimer { minimal_timers_insert(size32) } },
                    Contestant(name: "EventRunLoop") { ours(.insert) },
                ]
                    + (size <= 100_000
                        ? [
                            Contestant(name: "CFRunLoop") {
                                onThread { playTimersCF(size, .insert) }
                            }
                        ] : []))
            compare(
                "timer cancel", size: size,
                [
                    Contestant(name: "C floor") { perTimer { minimal_timers_cancel(size32) } },
                    Contestant(name: "EventRunLoop") { ours(.cancel) },
                ]
                    + (withCF
                        ? [
                            Contestant(name: "CFRunLoop") {
                                onThread { playTimersCF(size, .cancel) }
                            }
                        ] : []))
            compare(
                "timer fire, all due", size: size,
                [
                    Contestant(name: "C floor") { perTimer { minimal_timers_fire(size32) } },
                    Contestant(name: "EventRunLoop") { ours(.fire) },
                ]
                    + (withCF && size <= 1_000
                        ? [Contestant(name: "CFRunLoop") { onThread { playTimersCF(size, .fire) } }]
                        : []))
            compare(
                "timer re-date", size: size,
                [
                    Contestant(name: "C floor") {
                        Double(minimal_timers_redate(size32, 100_000)) / 100_000
                    },
                    Contestant(name: "EventRunLoop") {
                        Double(onThread { playTimers(size, .redate) }) / 100_000
                    },
                ]
                    + (withCF
                        ? [
                            Contestant(name: "CFRunLoop") {
                                onThread { playTimersCF(size, .redate) }
                            }
                        ] : []))
        }
    }
}

private enum TimerPhase { case insert, cancel, fire, redate }

/// Nanoseconds for all `size` timers; for `redate`, for 100,000 changes.
private func playTimers(_ size: Int, _ phase: TimerPhase) -> UInt64 {
    let loop = EventRunLoop.current
    var random = SystemRandomNumberGenerator()
    var fired = 0
    let timers = (0..<size).map { _ in
        LoopTimer(
            after: phase == .fire
                ? .zero : .nanoseconds(Int64.random(in: 1 << 45...1 << 50, using: &random))
        ) { _ in
            fired += 1
            if fired == size { loop.stop() }
        }
    }
    var began = now()
    for timer in timers { loop.add(timer, toMode: .default) }
    var elapsed = now() - began
    switch phase {
    case .insert: for timer in timers { timer.invalidate() }
    case .cancel:
        let shuffled = timers.shuffled(using: &random)
        began = now()
        for timer in shuffled { timer.invalidate() }
        elapsed = now() - began
    case .fire:
        began = now()
        loop.run()
        elapsed = now() - began
        precondition(fired == size)
    case .redate:
        let far = timers[0].nextFire
        let picks = (0..<100_000).map { _ in
            (
                timers[Int.random(in: 0..<size, using: &random)],
                far + .nanoseconds(Int64.random(in: 0...1 << 50, using: &random))
            )
        }
        began = now()
        for (timer, instant) in picks { timer.nextFire = instant }
        elapsed = now() - began
        for timer in timers { timer.invalidate() }
    }
    return elapsed
}

/// Nanoseconds an operation.
private func playTimersCF(_ size: Int, _ phase: TimerPhase) -> Double {
    let loop = CFRunLoopGetCurrent()!
    let start = CFAbsoluteTimeGetCurrent()
    var fired = 0
    let timers = (0..<size).map { index in
        CFRunLoopTimerCreateWithHandler(
            nil, phase == .fire ? start : start + 1e6 + Double(size - index), 0, 0, 0
        ) { _ in
            fired += 1
            if fired == size { CFRunLoopStop(loop) }
        }!
    }
    var began = now()
    for timer in timers { CFRunLoopAddTimer(loop, timer, kCFRunLoopDefaultMode) }
    var (elapsed, count) = (now() - began, size)
    let sample = timers.shuffled().prefix(200)
    switch phase {
    case .insert: break
    case .cancel:
        count = sample.count
        began = now()
        for timer in sample { CFRunLoopTimerInvalidate(timer) }
        elapsed = now() - began
    case .fire:
        began = now()
        CFRunLoopRun()
        elapsed = now() - began
    case .redate:
        count = sample.count
        began = now()
        for timer in sample {
            CFRunLoopTimerSetNextFireDate(timer, start + 1e6 + Double.random(in: 0..<Double(size)))
        }
        elapsed = now() - began
    }
    // The loop ends with its thread, and its timers with it: to invalidate them one by one is what takes so long.
    return Double(elapsed) / Double(count)
}
