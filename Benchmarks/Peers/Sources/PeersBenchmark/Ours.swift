// The work on EventRunLoop, and what the C contestants share.

import CPeers
import Foundation
import StallRunLoop

enum TimerPhase { case insert, cancel }

func iterate(_ count: Int) -> Double {
    let loop = EventRunLoop.current
    var left = count
    let source = LoopSource { source in
        left -= 1
        if left > 0 { source.signal() } else { loop.stop() }
    }
    loop.add(source, toMode: .default)
    source.signal()
    let began = now()
    loop.run()
    return Double(now() - began) / Double(count)
}

private nonisolated(unsafe) var left = 0
private nonisolated(unsafe) var finish: () -> Void = {}
private let countDown: @Sendable () -> Void = {
    left -= 1
    if left == 0 { finish() }
}

/// Nanoseconds for all posts, in the second of two rounds: the loop keeps its memory, as libuv's contestant has its own
/// from the beginning.
func post(_ posts: Int, _ producers: Int, capturing: Bool) -> Double {
    let loop = EventRunLoop.current
    let keep = LoopSource { _ in }
    loop.add(keep, toMode: .default)
    finish = { loop.stop() }
    // Known only at run time, so that a block that captures it needs memory of its own.
    let amount = producers > 0 ? 1 : 0
    var elapsed: UInt64 = 0
    for _ in 0..<2 {
        left = posts * producers
        let began = now()
        for _ in 0..<producers {
            Thread {
                if capturing {
                    for _ in 0..<posts {
                        loop.post {
                            left -= amount
                            if left == 0 { finish() }
                        }
                    }
                } else {
                    for _ in 0..<posts { loop.post(countDown) }
                }
            }.start()
        }
        loop.run()
        elapsed = now() - began
    }
    return Double(elapsed)
}

/// Nanoseconds a timer, in the last of several rounds: the loop keeps its buffers from one to the next.
func playTimers(_ size: Int, _ phase: TimerPhase, rounds: Int) -> Double {
    var last = 0.0
    for _ in 0..<rounds { last = playTimers(size, phase) }
    return last
}

private func playTimers(_ size: Int, _ phase: TimerPhase) -> Double {
    let loop = EventRunLoop.current
    let timers = (0..<size).map { _ in
        LoopTimer(after: .seconds(Int.random(in: 1_000...1_000_000))) { _ in }
    }
    // Without a reference more for each: the loop's work is measured and not the array's.
    let handles = timers.map { Unmanaged.passUnretained($0) }
    let order = handles.shuffled()
    return withExtendedLifetime(timers) {
        var began = now()
        for timer in handles {
            _ = timer._withUnsafeGuaranteedRef { loop.add($0, toMode: .default) }
        }
        var elapsed = now() - began
        began = now()
        for timer in order { timer._withUnsafeGuaranteedRef { $0.invalidate() } }
        if phase == .cancel { elapsed = now() - began }
        return Double(elapsed) / Double(size)
    }
}

typealias CTimers = (UInt32, UnsafeMutablePointer<UInt64>?, UnsafeMutablePointer<UInt64>?) -> Void

func playC(_ size: Int, _ repeats: Int, _ phase: TimerPhase, _ body: CTimers) -> Double {
    var total: UInt64 = 0
    for _ in 0..<repeats {
        var (insert, cancel): (UInt64, UInt64) = (0, 0)
        body(UInt32(size), &insert, &cancel)
        total += phase == .insert ? insert : cancel
    }
    return Double(total) / Double(size * repeats)
}

func serve(_ active: Int, _ count: Int, _ delivery: EventRunLoop.DescriptorDelivery) -> Double {
    let loop = EventRunLoop.current
    loop.descriptorDelivery = delivery
    let pipes = (0..<active).map { _ in peers_eventfd() }
    nonisolated(unsafe)
        let tally = UnsafeMutablePointer<(served: Int, pending: Int)>.allocate(capacity: 1)
    tally.initialize(to: (served: 0, pending: 0))
    defer { tally.deallocate() }
    @Sendable func writeAll() {
        var one: UInt64 = 1
        for descriptor in pipes { _ = write(descriptor, &one, 8) }
        tally.pointee.pending = active
    }
    let sources = pipes.map { descriptor in
        DescriptorSource(descriptor: descriptor) { _, _ in
            var value: UInt64 = 0
            read(descriptor, &value, 8)
            tally.pointee.served += 1
            tally.pointee.pending -= 1
            guard tally.pointee.pending == 0 else { return }
            if tally.pointee.served < count { writeAll() } else { loop.stop() }
        }
    }
    for source in sources { _ = try? loop.add(source, toMode: .default) }
    writeAll()
    let began = now()
    loop.run()
    let elapsed = now() - began
    for source in sources { source.invalidate() }
    for descriptor in pipes { close(descriptor) }
    return Double(elapsed) / Double(tally.pointee.served)
}
