import Foundation
import StallRunLoop

/// A block of a dispatch queue runs a loop and does not return. If the queue is serial, its later blocks starve; blocks
/// given to the loop itself still run. A concurrent queue has other threads for them.
func tourOfQueues() {
    for (name, queue) in [
        ("serial", DispatchQueue(label: "serial")),
        ("concurrent", DispatchQueue(label: "concurrent", attributes: .concurrent)),
    ] {
        print("  \(name) queue: \(eventsOfQueue(queue).joined(separator: ", "))")
    }
}

private func eventsOfQueue(_ queue: DispatchQueue) -> [String] {
    let (started, ran, ended) = (
        DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchGroup()
    )
    let log = Log()
    nonisolated(unsafe) var loop: EventRunLoop!
    queue.async(group: ended) {
        loop = .current
        let keep = LoopSource { _ in }
        loop.add(keep, toMode: .default)
        started.signal()
        loop.run()
        log.add("the loop ended")
        keep.invalidate()
    }
    started.wait()
    queue.async(group: ended) {
        log.add("the queue's next block ran")
        ran.signal()
    }
    _ = ran.wait(timeout: .now() + .milliseconds(200))
    let performed = DispatchSemaphore(value: 0)
    loop.perform {
        log.add("the performed block ran")
        performed.signal()
    }
    loop.wakeUp()
    performed.wait()
    loop.stop()
    ended.wait()
    return log.events
}

/// Events in the order in which several threads log them.
final class Log: @unchecked Sendable {
    private let lock = NSLock()
    private var added: [String] = []

    var events: [String] { lock.withLock { added } }

    func add(_ event: String) { lock.withLock { added.append(event) } }
}
