// Four threads do to one loop what threads may do, as fast as they can. Meant for ThreadSanitizer:
//
//     swift run --sanitize=thread conformance --stress

internal import Foundation
internal import StallRunLoop
internal import Synchronization

/// Returns whether every post ran.
func stress(rounds: Int) -> Bool {
    let ran = Counter()
    guard let thread = try? LoopThread(name: "stressed") else { return false }
    let loop = thread.loop
    let source = LoopSource { _ in }
    loop.add(source, toMode: .common)
    let producers = DispatchGroup()
    for producer in 0..<4 {
        producers.enter()
        Thread {
            var timers: [LoopTimer] = []
            for round in 0..<rounds {
                loop.post { ran.count.add(1, ordering: .relaxed) }
                source.signal()
                loop.wakeUp()
                let timer = LoopTimer(after: .microseconds(round % 50), every: .milliseconds(1)) {
                    _ in
                }
                loop.add(timer, toMode: round.isMultiple(of: 2) ? .default : .common)
                timers.append(timer)
                if timers.count > 8 { timers.removeFirst().invalidate() }
                timers[round % timers.count].nextFire = timer.nextFire
                if round % 16 == producer {
                    loop.addCommonMode(LoopMode("mode \(round % 3)"))
                    let observer = LoopObserver(activities: .beforeTimers) { _, _ in }
                    loop.add(observer, toMode: .common)
                    loop.performWhenIdle {}
                    observer.invalidate()
                    _ = (loop.isWaiting, loop.currentMode, loop.debugDescription)
                    loop.stop()
                }
            }
            for timer in timers { timer.invalidate() }
            producers.leave()
        }.start()
    }
    producers.wait()
    source.invalidate()
    thread.stop()
    return ran.count.load(ordering: .relaxed) == 4 * rounds
}

private final class Counter: Sendable { let count = Atomic<Int>(0) }
