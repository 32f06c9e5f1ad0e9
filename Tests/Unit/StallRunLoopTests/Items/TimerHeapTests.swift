import StallModel
import Testing
import TestSupport

@testable import StallRunLoop

/// Goal: the heap gives timers by deadline, then by the order they were added, whatever else is done to it.
/// Method: random operations with a seed, next to a plain sorted list.
@Suite struct TimerHeapTests {
    struct Entry {
        var timer: LoopTimer
        var slot: UInt32
        var deadline: UInt64
        var rank: Int
    }

    @Test(arguments: 1...8)
    func `random operations leave the heap in the order of a sorted list`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var heap = TimerHeap()
        var model: [Entry] = []
        var firing: [Entry] = []
        var rank = 0
        for _ in 0..<3_000 {
            rank += 1
            let deadline = UInt64.random(in: 0..<50, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1:
                // Every other seed has tolerances, so that the second order is kept beside the first.
                let tolerance = seed % 2 == 0 ? Int.random(in: 0..<20, using: &random) : 0
                let timer = LoopTimer(after: .zero, tolerance: .nanoseconds(tolerance)) { _ in }
                let slot = heap.insert(timer, deadline: deadline)
                model.append(Entry(timer: timer, slot: slot, deadline: deadline, rank: rank))
            case 2 where !model.isEmpty:
                let index = Int.random(in: 0..<model.count, using: &random)
                let entry = model.remove(at: index)
                heap.remove(entry.slot, of: entry.timer)
            case 3 where !model.isEmpty:
                let index = Int.random(in: 0..<model.count, using: &random)
                if Bool.random(using: &random) {
                    heap.move(model[index].slot, to: deadline)
                } else {
                    heap.suspend(model[index].slot)
                    heap.resume(model[index].slot, deadline: deadline)
                }
                model[index].deadline = deadline
                model[index].rank = rank
            case 4 where !model.isEmpty:
                let entry = model.remove(at: Int.random(in: 0..<model.count, using: &random))
                heap.suspend(entry.slot)
                firing.append(entry)
            case 5 where !firing.isEmpty:
                var entry = firing.remove(at: Int.random(in: 0..<firing.count, using: &random))
                if Bool.random(using: &random) {
                    (entry.deadline, entry.rank) = (deadline, rank)
                    heap.resume(entry.slot, deadline: deadline)
                    model.append(entry)
                } else {
                    heap.remove(entry.slot, of: entry.timer)
                }
            default: break
            }
            // Not after each operation: a look takes out what a suspension has left.
            guard Bool.random(using: &random) else { continue }
            let isAnyFiring = heap.isAnyFiring
            #expect(isAnyFiring == !firing.isEmpty)
            let latest =
                model.map { $0.deadline + UInt64($0.timer.tolerance.nanoseconds) }.min() ?? .max
            let (wakeDeadline, earliest) = (heap.wakeDeadline(), heap.earliest)
            #expect(wakeDeadline == latest)
            #expect(earliest == model.map(\.deadline).min() ?? .max)
            #expect(heap.count == model.count + firing.count)
        }
        let limit: UInt64 = 30
        let expected = model.filter { $0.deadline <= limit }
            .sorted { ($0.deadline, $0.rank) < ($1.deadline, $1.rank) }.map {
                ObjectIdentifier($0.timer)
            }
        let due = heap.due(at: limit).map { ObjectIdentifier($0) }
        #expect(due == expected)
        // Suspended ones are in the mode, free slots are not.
        for entry in model.prefix(model.count / 2) { heap.suspend(entry.slot) }
        var all: [ObjectIdentifier] = []
        heap.forEach { all.append(ObjectIdentifier($0)) }
        #expect(all.count == model.count + firing.count)
        #expect(Set(all) == Set((model + firing).map { ObjectIdentifier($0.timer) }))
    }

    @Test func `the heap lets go of a removed timer at once, and of the others with itself`() {
        weak var removed: LoopTimer?
        weak var suspended: LoopTimer?
        weak var waiting: LoopTimer?
        func add(_ heap: inout TimerHeap) -> (LoopTimer, UInt32) {
            let timer = LoopTimer(after: .zero) { _ in }
            return (timer, heap.insert(timer, deadline: 5))
        }
        func play() {
            var heap = TimerHeap()
            var (timer, slot) = add(&heap)
            removed = timer
            heap.remove(slot, of: timer)
            (timer, slot) = add(&heap)
            suspended = timer
            #expect(removed == nil)
            heap.suspend(slot)
            (timer, slot) = add(&heap)
            waiting = timer
            (timer, slot) = add(&heap)
            heap.remove(slot, of: timer)
            #expect(suspended != nil && waiting != nil)
        }
        play()
        #expect(suspended == nil && waiting == nil)
    }

    @Test func `a timer whose handler runs stays in the heap but is not due`() {
        var heap = TimerHeap()
        let slot = heap.insert(LoopTimer(after: .zero) { _ in }, deadline: 5)
        heap.suspend(slot)
        #expect(heap.count == 1)
        let (whileFiring, due) = (heap.earliest, heap.due(at: 10))
        #expect(whileFiring == .max)
        #expect(due.isEmpty)
        heap.resume(slot, deadline: 7)
        let after = heap.earliest
        #expect(after == 7)
    }

    static let tolerances: [(tolerances: [Int], wakesAt: UInt64)] = [
        ([0, 0, 0], 100), ([1_000, 0, 0], 110), ([1_000, 1_000, 1_000], 1_100),
        ([5, 1_000, 1_000], 105), ([1_000, 5, 0], 115),
    ]

    @Test(arguments: tolerances)
    func `the loop sleeps as long as every tolerance allows`(tolerances: [Int], wakesAt: UInt64) {
        var heap = TimerHeap()
        for (index, tolerance) in tolerances.enumerated() {
            let timer = LoopTimer(after: .zero, tolerance: .nanoseconds(tolerance)) { _ in }
            _ = heap.insert(timer, deadline: UInt64(100 + 10 * index))
        }
        let deadline = heap.wakeDeadline()
        #expect(deadline == wakesAt)
    }
}
