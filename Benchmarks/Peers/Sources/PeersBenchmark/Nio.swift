// The work on a SwiftNIO event loop.

import CPeers
import Dispatch
import Foundation
import NIOCore
import NIOPosix

private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
private let eventLoop = group.next()
private nonisolated(unsafe) var left = 0
private nonisolated(unsafe) var finish: () -> Void = {}

func iterateNIO(_ count: Int) -> Double {
    let done = DispatchSemaphore(value: 0)
    left = count
    @Sendable func step() {
        left -= 1
        if left > 0 { eventLoop.execute(step) } else { done.signal() }
    }
    let began = now()
    eventLoop.execute(step)
    done.wait()
    return Double(now() - began) / Double(count)
}

private let countDown: @Sendable () -> Void = {
    left -= 1
    if left == 0 { finish() }
}

func postNIO(_ posts: Int, _ producers: Int) -> Double {
    let done = DispatchSemaphore(value: 0)
    left = posts * producers
    finish = { done.signal() }
    let began = now()
    for _ in 0..<producers {
        Thread { for _ in 0..<posts { eventLoop.execute(countDown) } }.start()
    }
    done.wait()
    return Double(now() - began)
}

/// On the event loop's thread, as a program on NIO would.
func playTimersNIO(_ size: Int, _ phase: TimerPhase) -> Double {
    try! eventLoop.submit {
        var began = now()
        var tasks = (0..<size).map { _ in
            eventLoop.scheduleTask(in: .hours(Int64.random(in: 1...1_000))) {}
        }
        var elapsed = now() - began
        tasks.shuffle()
        if phase == .cancel { tasks = Array(tasks.prefix(1_000)) }
        began = now()
        for task in tasks { task.cancel() }
        if phase == .cancel { elapsed = now() - began }
        return Double(elapsed) / Double(tasks.count)
    }.wait()
}

/// A separate loop, whose end cancels the rest: cancelling one is linear in their number.
func loadTimersNIO(_ present: Int, _ count: Int) -> load_costs {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    defer { try! group.syncShutdownGracefully() }
    let eventLoop = group.next()
    @Sendable func schedule() -> Scheduled<Void> {
        eventLoop.scheduleTask(in: .seconds(Int64(1_000 + random(below: 1_000_000)))) {}
    }
    return try! eventLoop.submit {
        var tasks = (0..<present).map { _ in schedule() }
        tasks.reserveCapacity(present + count)
        var costs = load_costs()
        costs.add = cpu(count) { for _ in 0..<count { tasks.append(schedule()) } }
        tasks.shuffle()
        costs.change = cpu(count) {
            for index in 0..<count {
                tasks[index].cancel()
                tasks[index] = schedule()
            }
        }
        tasks.shuffle()
        costs.remove = cpu(count) { for index in 0..<count { tasks[index].cancel() } }
        return costs
    }.wait()
}
