import CLinux
import Dispatch
import StallModel
import Testing

@testable import StallAgent

/// Goal: a thread finds the watched queue whose item it runs, and no other.
/// Method: items of queues with and without a target, which look themselves.
@Suite(.serialized) struct WatchedQueueTests {
    private func found(on queue: DispatchQueue) -> UInt {
        queue.sync { UInt(bitPattern: stall_watched_queue_current().queue) }
    }

    private func address(_ queue: DispatchQueue) -> UInt { UInt(bitPattern: queue.dispatchObject) }

    private func target(_ queue: DispatchQueue) throws -> (DispatchQueueTarget, SharedBeacon) {
        let beacon = try #require(SharedBeacon())
        let target = DispatchQueueTarget(queue, beacon: beacon) { $0.async(execute: $1) }
        return (target, beacon)
    }

    @Test func `an item finds its own queue while that is watched`() throws {
        let (first, second) = (DispatchQueue(label: "first"), DispatchQueue(label: "second"))
        let other = DispatchQueue(label: "other")
        do {
            let (one, two) = (try target(first), try target(second))
            withExtendedLifetime((one, two)) {
                #expect(found(on: first) == address(first))
                #expect(found(on: second) == address(second))
                #expect(found(on: other) == 0)
                #expect(first.sync { found(on: other) } == 0)
            }
        }
        #expect(found(on: first) == 0 && found(on: second) == 0)
    }

    /// The watch of a queue that was freed ends with the next look at it.
    @Test func `another queue at the address of one that was freed is told by its label`() throws {
        var watched: [(DispatchQueueTarget, SharedBeacon)] = []
        var freed: Set<UInt> = []
        for number in 0..<50 {
            let queue = DispatchQueue(label: "freed \(number)")
            freed.insert(address(queue))
            watched.append(try target(queue))
        }
        let others = (0..<200).map { DispatchQueue(label: "other \($0)") }
        try #require(others.contains { freed.contains(address($0)) })
        withExtendedLifetime(watched) { #expect(others.allSatisfy { found(on: $0) == 0 }) }
    }

    @Test func `an item's phase is its queue's`() throws {
        let queue = DispatchQueue(label: "watched")
        let watched = try target(queue)
        withExtendedLifetime(watched) {
            let phase = queue.sync { stall_watched_queue_current().phase }
            #expect(phase == LoopPhase.block.rawValue)
        }
    }

    @Test func `more queues than there is room for are not found`() throws {
        let queues = (0..<300).map { DispatchQueue(label: "\($0)") }
        let watched = try queues.map(target)
        withExtendedLifetime(watched) {
            let count = queues.count { found(on: $0) != 0 }
            #expect(count > 0 && count <= Int(STALL_WATCHED_QUEUE_LIMIT))
        }
    }
}
