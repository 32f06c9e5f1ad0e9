// Descriptors that become ready: an eventfd is written, served and read.

import CMinimalLoop
import CoreFoundation
import Foundation
import StallRunLoop

extension Bench {
    mutating func descriptors() {
        let count = 50_000
        for active in [1, 100, 1_000] {
            compare(
                "descriptor event", size: active,
                [
                    Contestant(name: "C floor, 256 a wait") {
                        onThread { serveC(active, count, eventsPerWait: 256) }
                    },
                    Contestant(name: "EventRunLoop batch") {
                        onThread { serve(active, count, .batch) }
                    },
                    Contestant(name: "C floor, 1 a wait") {
                        onThread { serveC(active, count, eventsPerWait: 1) }
                    },
                    Contestant(name: "EventRunLoop strict") {
                        onThread { serve(active, count, .strict) }
                    },
                    Contestant(name: "Dispatch read source") { serveDispatch(active, count / 5) },
                ])
        }
    }
}

private func serveC(_ active: Int, _ count: Int, eventsPerWait: CInt) -> Double {
    Double(minimal_descriptors(CInt(active), UInt64(count), eventsPerWait)) / Double(count)
}

/// The handler's own counters lie behind a pointer: captured variables would be checked for exclusive access at each use,
/// which is not the loop's work.
private func serve(_ active: Int, _ count: Int, _ delivery: EventRunLoop.DescriptorDelivery)
    -> Double
{
    let loop = EventRunLoop.current
    loop.descriptorDelivery = delivery
    let descriptors = (0..<active).map { _ in minimal_eventfd() }
    nonisolated(unsafe)
        let tally = UnsafeMutablePointer<(served: Int, pending: Int)>.allocate(capacity: 1)
    tally.initialize(to: (served: 0, pending: 0))
    defer { tally.deallocate() }
    let writeAll: @Sendable () -> Void = {
        var one: UInt64 = 1
        for descriptor in descriptors { _ = write(descriptor, &one, 8) }
        tally.pointee.pending = active
    }
    let sources = descriptors.map { descriptor in
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
    for descriptor in descriptors { close(descriptor) }
    return Double(elapsed) / Double(tally.pointee.served)
}

private func serveDispatch(_ active: Int, _ count: Int) -> Double {
    let queue = DispatchQueue(label: "descriptors")
    let descriptors = (0..<active).map { _ in minimal_eventfd() }
    let done = DispatchSemaphore(value: 0)
    nonisolated(unsafe) var (served, pending) = (0, active)
    @Sendable func writeAll() {
        var one: UInt64 = 1
        for descriptor in descriptors { _ = write(descriptor, &one, 8) }
    }
    let sources = descriptors.map { descriptor in
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler {
            var value: UInt64 = 0
            read(descriptor, &value, 8)
            served += 1
            pending -= 1
            guard pending == 0 else { return }
            pending = active
            if served < count { writeAll() } else { done.signal() }
        }
        source.resume()
        return source
    }
    let began = now()
    queue.async { writeAll() }
    done.wait()
    let elapsed = now() - began
    for source in sources { source.cancel() }
    queue.sync {}
    for descriptor in descriptors { close(descriptor) }
    return Double(elapsed) / Double(served)
}
