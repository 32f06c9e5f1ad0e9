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

func post(_ posts: Int, _ producers: Int) -> Double {
    let loop = EventRunLoop.current
    loop.add(LoopSource { _ in }, toMode: .default)
    left = posts * producers
    finish = { loop.stop() }
    let began = now()
    for _ in 0..<producers { Thread { for _ in 0..<posts { loop.post(countDown) } }.start() }
    loop.run()
    return Double(now() - began)
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
    var began = now()
    for timer in timers { loop.add(timer, toMode: .default) }
    var elapsed = now() - began
    let order = timers.shuffled()
    began = now()
    for timer in order { timer.invalidate() }
    if phase == .cancel { elapsed = now() - began }
    return Double(elapsed) / Double(size)
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
    var (served, pending) = (0, 0)
    func writeAll() {
        var one: UInt64 = 1
        for descriptor in pipes { _ = write(descriptor, &one, 8) }
        pending = active
    }
    let sources = pipes.map { descriptor in
        DescriptorSource(descriptor: descriptor) { _, _ in
            var value: UInt64 = 0
            read(descriptor, &value, 8)
            served += 1
            pending -= 1
            guard pending == 0 else { return }
            if served < count { writeAll() } else { loop.stop() }
        }
    }
    for source in sources { _ = try? loop.add(source, toMode: .default) }
    writeAll()
    let began = now()
    loop.run()
    let elapsed = now() - began
    for source in sources { source.invalidate() }
    for descriptor in pipes { close(descriptor) }
    return Double(elapsed) / Double(served)
}
