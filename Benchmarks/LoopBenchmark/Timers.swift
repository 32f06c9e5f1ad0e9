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
            func slab(_ phase: TimerPhase, _ isLocked: Bool) -> Double {
                perTimer { onThread { playSlab(size, phase, isLocked) } }
            }
            let withCF = size <= 100_000
            compare(
                "timer insert", size: size,
                [
                    Contestant(name: "C floor") {
                        perTimer { onThread { minimal_timers_insert(size32) } }
                    },
                    Contestant(name: "EventRunLoop") { ours(.insert) },
                    Contestant(name: "slab, locked") { slab(.insert, true) },
                    Contestant(name: "slab, no lock") { slab(.insert, false) },
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
                    Contestant(name: "slab, locked") { slab(.cancel, true) },
                    Contestant(name: "slab, no lock") { slab(.cancel, false) },
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
                    Contestant(name: "slab, locked") { slab(.fire, true) },
                    Contestant(name: "slab, no lock") { slab(.fire, false) },
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
                    Contestant(name: "slab, locked") {
                        Double(onThread { playSlab(size, .redate, true) }) / 100_000
                    },
                    Contestant(name: "slab, no lock") {
                        Double(onThread { playSlab(size, .redate, false) }) / 100_000
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

/// Nanoseconds for all `size` timers; for `redate`, for 100,000 changes. The array holds the timers; operations are
/// called on its elements without another reference, so that the loop's work is measured and not the array's.
private func playTimers(_ size: Int, _ phase: TimerPhase) -> UInt64 {
    let loop = EventRunLoop.current
    var random = Xorshift()
    nonisolated(unsafe) var fired = 0
    let start = MonotonicInstant(nanoseconds: now())
    let timers = (0..<size).map { _ in
        LoopTimer(at: phase == .fire ? start : start + random.farDelay()) { _ in
            fired += 1
            if fired == size { loop.stop() }
        }
    }
    defer { for timer in timers { timer.invalidate() } }
    let handles = timers.map { Unmanaged.passUnretained($0) }
    switch phase {
    case .insert:
        return elapsed { for timer in handles { timer.use { loop.add($0, toMode: .default) } } }
    case .cancel:
        for timer in timers { loop.add(timer, toMode: .default) }
        let shuffled = handles.shuffled(using: &random)
        return elapsed { for timer in shuffled { timer.use { $0.invalidate() } } }
    case .fire:
        for timer in timers { loop.add(timer, toMode: .default) }
        defer { precondition(fired == size) }
        return elapsed { loop.run() }
    case .redate:
        for timer in timers { loop.add(timer, toMode: .default) }
        let changes = (0..<100_000).map { _ in
            (timer: handles[Int(random.next() % UInt64(size))], instant: start + random.farDelay())
        }
        return elapsed {
            for change in changes { change.timer.use { $0.nextFire = change.instant } }
        }
    }
}

/// The same with timers in a slab. To insert one is to make it.
private func playSlab(_ size: Int, _ phase: TimerPhase, _ isLocked: Bool) -> UInt64 {
    let slab = TimerSlab(capacity: size, isLocked: isLocked)
    var random = Xorshift()
    let start = MonotonicInstant(nanoseconds: now())
    nonisolated(unsafe) var fired = 0
    var handles: [TimerSlab.Handle] = []
    handles.reserveCapacity(size)
    let instants = (0..<size).map { _ in
        (phase == .fire ? start : start + random.farDelay()).nanoseconds
    }
    let inserting = elapsed {
        for instant in instants { handles.append(slab.insert(at: instant) { fired += 1 }) }
    }
    switch phase {
    case .insert: return inserting
    case .cancel:
        let shuffled = handles.shuffled(using: &random)
        return elapsed { for handle in shuffled { _ = slab.cancel(handle) } }
    case .fire:
        defer { precondition(fired == size) }
        return elapsed { slab.fire(upTo: start.nanoseconds) }
    case .redate:
        let changes = (0..<100_000).map { _ in
            (
                handle: handles[Int(random.next() % UInt64(size))],
                instant: (start + random.farDelay()).nanoseconds
            )
        }
        return elapsed {
            for change in changes { _ = slab.move(change.handle, to: change.instant) }
        }
    }
}

/// Nanoseconds that `body` takes; perf, if it controls this process, records only those.
private func elapsed(_ body: () -> Void) -> UInt64 {
    tellPerf("enable")
    let began = now()
    body()
    let elapsed = now() - began
    tellPerf("disable")
    return elapsed
}

/// The pipe of scripts/profile-timers; -1 without it.
private let perfControl =
    ProcessInfo.processInfo.environment["PERF_CONTROL"].map {
        open($0, O_WRONLY)
    } ?? -1

private func tellPerf(_ command: String) {
    guard perfControl >= 0 else { return }
    let line = command + "\n"
    _ = write(perfControl, line, line.utf8.count)
    // It does not signal completion; it takes some milliseconds.
    usleep(20_000)
}

extension Unmanaged {
    fileprivate func use(_ body: (Instance) -> Void) { _withUnsafeGuaranteedRef(body) }
}

/// Precomputed random numbers for the floor: a system call for each would take longer than what is measured.
private struct Xorshift: RandomNumberGenerator {
    var state: UInt64 = 88_172_645_463_325_252

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }

    /// From 10 hours to 13 days.
    mutating func farDelay() -> Duration { .nanoseconds(Int64(1 << 45 + next() >> 14)) }
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
    // The loop ends with its thread, and its timers with it: invalidating them one by one would take too long.
    return Double(elapsed) / Double(count)
}
