// Work handed from thread to thread: how many posts a second, and how long there and back.

import CMinimalLoop
import CoreFoundation
import Foundation
import StallRunLoop

extension Bench {
    mutating func posts() {
        for producers in [1, 4] {
            let count = 400_000 / producers
            let total = Double(count * producers)
            compare(
                "cross-thread post", size: producers, unit: "ns/post",
                [
                    Contestant(name: "C lock-free") {
                        Double(minimal_post_lock_free(UInt64(count), CInt(producers))) / total
                    },
                    Contestant(name: "C mutex") {
                        Double(minimal_post_locked(UInt64(count), CInt(producers))) / total
                    },
                    Contestant(name: "EventRunLoop") {
                        onThread {
                            _ = postOurs(count, producers)
                            return postOurs(count, producers)
                        } / total
                    },
                    Contestant(name: "CFRunLoop") {
                        onThread { postCF(count / 4, producers) } * 4 / total
                    },
                    Contestant(name: "Dispatch") { postDispatch(count, producers) / total },
                ])
        }
        compare(
            "ping-pong", unit: "ns/round",
            [
                Contestant(name: "EventRunLoop") { pingPongOurs(20_000) },
                Contestant(name: "CFRunLoop") { pingPongCF(20_000) },
                Contestant(name: "Dispatch") { pingPongDispatch(20_000) },
            ])
    }
}

/// How many of a round's posts have yet to run. Global, so that no contestant's block captures anything: blocks that
/// capture cost all of them the same allocation.
private nonisolated(unsafe) var left = 0
private nonisolated(unsafe) var finish: () -> Void = {}

private let count: @Sendable () -> Void = {
    left -= 1
    if left == 0 { finish() }
}

private func startProducers(_ producers: Int, _ body: @escaping @Sendable () -> Void) {
    for _ in 0..<producers { Thread(block: body).start() }
}

private func postOurs(_ posts: Int, _ producers: Int) -> Double {
    let loop = EventRunLoop.current
    let keep = LoopSource { _ in }
    loop.add(keep, toMode: .default)
    left = posts * producers
    finish = { loop.stop() }
    let began = now()
    startProducers(producers) { for _ in 0..<posts { loop.post(count) } }
    loop.run()
    let elapsed = now() - began
    keep.invalidate()
    return Double(elapsed)
}

private func postCF(_ posts: Int, _ producers: Int) -> Double {
    nonisolated(unsafe) let loop = CFRunLoopGetCurrent()!
    var context = CFRunLoopSourceContext()
    let keep = CFRunLoopSourceCreate(nil, 0, &context)
    CFRunLoopAddSource(loop, keep, kCFRunLoopDefaultMode)
    left = posts * producers
    finish = { CFRunLoopStop(loop) }
    let began = now()
    startProducers(producers) {
        for _ in 0..<posts {
            CFRunLoopPerformBlock(loop, kCFRunLoopDefaultMode, count)
            CFRunLoopWakeUp(loop)
        }
    }
    CFRunLoopRun()
    let elapsed = now() - began
    CFRunLoopSourceInvalidate(keep)
    return Double(elapsed)
}

private func postDispatch(_ posts: Int, _ producers: Int) -> Double {
    let queue = DispatchQueue(label: "post")
    let done = DispatchSemaphore(value: 0)
    left = posts * producers
    finish = { done.signal() }
    let began = now()
    startProducers(producers) { for _ in 0..<posts { queue.async(execute: count) } }
    done.wait()
    return Double(now() - began)
}

private func pingPongOurs(_ count: Int) -> Double {
    guard let ping = try? LoopThread(name: "ping"), let pong = try? LoopThread(name: "pong") else {
        return 0
    }
    let done = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var left = count
    @Sendable func serve() {
        pong.loop.post {
            ping.loop.post {
                left -= 1
                if left > 0 { serve() } else { done.signal() }
            }
        }
    }
    let began = now()
    serve()
    done.wait()
    return Double(now() - began) / Double(count)
}

private func pingPongCF(_ count: Int) -> Double {
    let started = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var loops: [CFRunLoop] = []
    for _ in 0..<2 {
        Thread {
            var context = CFRunLoopSourceContext()
            let keep = CFRunLoopSourceCreate(nil, 0, &context)
            CFRunLoopAddSource(CFRunLoopGetCurrent(), keep, kCFRunLoopDefaultMode)
            loops.append(CFRunLoopGetCurrent())
            started.signal()
            CFRunLoopRun()
        }.start()
        started.wait()
    }
    nonisolated(unsafe) let (ping, pong) = (loops[0], loops[1])
    @Sendable func post(_ loop: CFRunLoop, _ block: @escaping () -> Void) {
        CFRunLoopPerformBlock(loop, kCFRunLoopDefaultMode, block)
        CFRunLoopWakeUp(loop)
    }
    let done = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var left = count
    @Sendable func serve() {
        post(pong) {
            post(ping) {
                left -= 1
                if left > 0 { serve() } else { done.signal() }
            }
        }
    }
    let began = now()
    serve()
    done.wait()
    let elapsed = now() - began
    for loop in [ping, pong] { CFRunLoopStop(loop) }
    return Double(elapsed) / Double(count)
}

private func pingPongDispatch(_ count: Int) -> Double {
    let (ping, pong) = (DispatchQueue(label: "ping"), DispatchQueue(label: "pong"))
    let done = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var left = count
    @Sendable func serve() {
        pong.async {
            ping.async {
                left -= 1
                if left > 0 { serve() } else { done.signal() }
            }
        }
    }
    let began = now()
    serve()
    done.wait()
    return Double(now() - began) / Double(count)
}
