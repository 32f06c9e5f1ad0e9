// The Swift cooperative pool and a Dispatch queue as victims: their items record their own times.

import CMishaps
import Dispatch
import Foundation
import StallAgent
import Synchronization

/// Exhausts the pool, and keeps it busy without exhausting it.
final class VictimPool: Sendable {
    static let name = "cooperative pool"
    private let threshold: Duration
    private let truth: Truth
    private let width = ProcessInfo.processInfo.activeProcessorCount

    init(threshold: Duration, truth: Truth) {
        self.threshold = threshold
        self.truth = truth
    }

    func drive(until deadline: UInt64) {
        while monotonic() < deadline {
            exhaust(for: threshold * Double.random(in: 1.3...8))
            usleep(.random(in: 20_000...120_000))
            // All threads are occupied, and no task waits.
            block(for: threshold * Double.random(in: 0.2...3), waiters: 0)
            truth.countHealthy(1)
            usleep(.random(in: 20_000...60_000))
            // Many that wait for a moment each.
            let group = DispatchGroup()
            for _ in 0..<200 {
                group.enter()
                Task.detached {
                    usleep(500)
                    group.leave()
                }
            }
            group.wait()
            truth.countHealthy(200)
        }
    }

    private func exhaust(for length: Duration) {
        let wall = wallClock()
        let (began, ended) = block(for: length, waiters: .random(in: 1...3))
        truth.note(
            Episode(
                loop: Self.name, threshold: threshold, isStall: true, start: wall,
                duration: Int64(ended - began) / 1000, began: began / 1000, queued: 0))
    }

    /// Occupies every thread; the waiting tasks come after. Returns from when all were occupied until the first was
    /// free.
    @discardableResult
    private func block(for length: Duration, waiters: Int) -> (began: UInt64, ended: UInt64) {
        let (group, all) = (DispatchGroup(), DispatchSemaphore(value: 0))
        let times = Mutex((began: UInt64(0), ended: UInt64.max))
        for _ in 0..<width {
            group.enter()
            Task.detached {
                all.signal()
                times.withLock { $0.began = max($0.began, monotonic()) }
                usleep(UInt32(length / .microseconds(1)))
                times.withLock { $0.ended = min($0.ended, monotonic()) }
                group.leave()
            }
        }
        for _ in 0..<width { all.wait() }
        for _ in 0..<waiters {
            group.enter()
            Task.detached { group.leave() }
        }
        group.wait()
        return times.withLock { $0 }
    }
}

/// A serial queue with short items.
final class VictimQueue: @unchecked Sendable {
    // Unchecked because one driver uses it.
    let name: String
    let threshold: Duration
    let queue: DispatchQueue
    private let truth: Truth

    init(name: String, threshold: Duration, truth: Truth) {
        self.name = name
        self.threshold = threshold
        self.truth = truth
        queue = DispatchQueue(label: "victim.\(name)")
    }

    func drive(until deadline: UInt64) {
        while monotonic() < deadline {
            for _ in 0..<Int.random(in: 1...4) {
                let length = UInt64.random(in: 2_000_000...UInt64(threshold / .nanoseconds(5)) * 2)
                let computes = Int.random(in: 0..<4) == 0
                queue.async { [self] in item(lasting: length, computes: computes) }
            }
            queue.sync {}
            usleep(.random(in: 200...8_000))
        }
    }

    private func item(lasting length: UInt64, computes: Bool) {
        let queuedBefore = runDelay()
        let (wall, began) = (wallClock(), monotonic())
        if computes {
            let limit = mishap_thread_cpu_ns() + length
            while mishap_thread_cpu_ns() < limit {}
        } else {
            usleep(UInt32(length / 1000))
        }
        truth.note(
            Episode(
                loop: name, threshold: threshold, isStall: false, start: wall,
                duration: Int64(monotonic() - began) / 1000, began: began / 1000,
                queued: runDelay() - queuedBefore))
        truth.countHealthy(1)
    }
}
