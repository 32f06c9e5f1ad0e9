// One iteration of a loop: with pending work (poll path), and with a sleep.

import CMinimalLoop
import CoreFoundation
import Foundation
import StallRunLoop

extension Bench {
    mutating func iterations() {
        let count = 200_000
        compare(
            "iteration, poll path",
            [
                Contestant(name: "C floor") {
                    onThread { Double(minimal_iterate(UInt64(count))) / Double(count) }
                },
                Contestant(name: "EventRunLoop") { onThread { iterate(count, descriptor: false) } },
                Contestant(name: "EventRunLoop+descriptor") {
                    onThread { iterate(count, descriptor: true) }
                },
                Contestant(name: "CFRunLoop") { onThread { iterateCF(count) } },
                Contestant(name: "Dispatch") { selfAsync(count) },
            ])
        compare(
            "iteration, sleep path",
            [
                Contestant(name: "C floor") {
                    onThread { Double(minimal_wake(UInt64(count / 4))) / Double(count / 4) }
                },
                Contestant(name: "EventRunLoop") { onThread { sleepAndWake(count / 4) } },
                Contestant(name: "CFRunLoop") { onThread { sleepAndWakeCF(count / 4) } },
            ])
    }
}

/// A source that signals itself, `count` times.
private func iterate(_ count: Int, descriptor: Bool) -> Double {
    let loop = EventRunLoop.current
    var left = count
    let source = LoopSource { source in
        left -= 1
        if left > 0 { source.signal() } else { loop.stop() }
    }
    loop.add(source, toMode: .default)
    let idle = DescriptorSource(descriptor: minimal_eventfd()) { _, _ in }
    if descriptor { _ = try? loop.add(idle, toMode: .default) }
    source.signal()
    let began = now()
    loop.run(for: .seconds(1_000))
    let elapsed = now() - began
    idle.invalidate()
    source.invalidate()
    close(idle.descriptor)
    return Double(elapsed) / Double(count)
}

private func iterateCF(_ count: Int) -> Double {
    final class State {
        var left: Int
        var source: CFRunLoopSource!
        init(_ left: Int) { self.left = left }
    }
    let state = State(count)
    var context = CFRunLoopSourceContext()
    context.info = Unmanaged.passUnretained(state).toOpaque()
    context.perform = {
        let state = Unmanaged<State>.fromOpaque($0!).takeUnretainedValue()
        state.left -= 1
        if state.left > 0 {
            CFRunLoopSourceSignal(state.source)
        } else {
            CFRunLoopStop(CFRunLoopGetCurrent())
        }
    }
    state.source = CFRunLoopSourceCreate(nil, 0, &context)
    CFRunLoopAddSource(CFRunLoopGetCurrent(), state.source, kCFRunLoopDefaultMode)
    CFRunLoopSourceSignal(state.source)
    let began = now()
    CFRunLoopRunInMode(kCFRunLoopDefaultMode, 1_000, false)
    let elapsed = now() - began
    CFRunLoopSourceInvalidate(state.source)
    return Double(elapsed) / Double(count)
}

private func selfAsync(_ count: Int) -> Double {
    let queue = DispatchQueue(label: "self")
    let done = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var left = count
    @Sendable func step() {
        left -= 1
        if left > 0 { queue.async(execute: step) } else { done.signal() }
    }
    let began = now()
    queue.async(execute: step)
    done.wait()
    return Double(now() - began) / Double(count)
}

/// Each iteration is woken by its own descriptor: it sleeps in the kernel and serves it.
private func sleepAndWake(_ count: Int) -> Double {
    let loop = EventRunLoop.current
    var left = count
    let descriptor = minimal_eventfd()
    let source = DescriptorSource(descriptor: descriptor) { source, _ in
        var value: UInt64 = 1
        read(descriptor, &value, 8)
        left -= 1
        value = 1
        if left > 0 { _ = write(descriptor, &value, 8) } else { loop.stop() }
    }
    _ = try? loop.add(source, toMode: .default)
    var one: UInt64 = 1
    _ = write(descriptor, &one, 8)
    let began = now()
    loop.run()
    let elapsed = now() - began
    source.invalidate()
    close(descriptor)
    return Double(elapsed) / Double(count)
}

private func sleepAndWakeCF(_ count: Int) -> Double {
    final class State {
        var left: Int
        let descriptor: CInt
        init(_ left: Int, _ descriptor: CInt) {
            self.left = left
            self.descriptor = descriptor
        }
    }
    let state = State(count, minimal_eventfd())
    var context = CFRunLoopSourceContext1()
    context.version = 1
    context.info = Unmanaged.passUnretained(state).toOpaque()
    context.getPort = { Unmanaged<State>.fromOpaque($0!).takeUnretainedValue().descriptor }
    context.perform = {
        let state = Unmanaged<State>.fromOpaque($0!).takeUnretainedValue()
        state.left -= 1
        var one: UInt64 = 1
        if state.left > 0 {
            _ = write(state.descriptor, &one, 8)
        } else {
            CFRunLoopStop(CFRunLoopGetCurrent())
        }
    }
    let source = withUnsafeMutablePointer(to: &context) {
        $0.withMemoryRebound(to: CFRunLoopSourceContext.self, capacity: 1) {
            CFRunLoopSourceCreate(nil, 0, $0)
        }
    }
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode)
    var one: UInt64 = 1
    _ = write(state.descriptor, &one, 8)
    let began = now()
    CFRunLoopRun()
    let elapsed = now() - began
    CFRunLoopSourceInvalidate(source)
    close(state.descriptor)
    return Double(elapsed) / Double(count)
}
