import Foundation
import LoopConformance
import Synchronization
import TestSupport
import Testing

@testable import StallRunLoop

/// Goal: no block is lost, run twice or overtaken, however many threads post.
@Suite struct BlockQueueTests {
    @Test func `blocks run in order, and those of another mode keep theirs`() {
        onFreshThread {
            let loop = EventRunLoop.current
            loop.add(LoopSource { _ in }, toMode: "other")
            loop.add(LoopSource { _ in }, toMode: .default)
            nonisolated(unsafe) var log: [Int] = []
            for number in 0..<2_000 {
                loop.perform(inMode: number.isMultiple(of: 3) ? "other" : .default) {
                    log.append(number)
                }
            }
            loop.run(for: .zero)
            #expect(log == (0..<2_000).filter { !$0.isMultiple(of: 3) })
            log = []
            loop.run(mode: "other", for: .zero)
            #expect(log == (0..<2_000).filter { $0.isMultiple(of: 3) })
        }
    }

    /// Goal: whatever the modes of blocks and runs, nested ones included, each block runs once, in the order it was
    /// posted. Method: random posts and runs with a seed, beside a list that is searched.
    @Test(arguments: 1...20, [Int.max, 5])
    func `blocks of any modes run as from one list`(seed: UInt64, limit: Int) {
        onFreshThread {
            let loop = EventRunLoop.current
            loop.blocksPerPass = limit
            var random = SeededGenerator(seed: seed)
            let modes: [LoopMode] = [.default, "common too", "other", "third"]
            loop.addCommonMode("common too")
            for mode in modes { loop.add(LoopSource { _ in }, toMode: mode) }
            nonisolated(unsafe) var waiting: [(number: Int, modes: [LoopMode])] = []
            nonisolated(unsafe) var ran: [Int] = []
            for number in 0..<2_000 {
                let all = modes + [.common]
                let chosen = (0...Int.random(in: 0...2, using: &random)).map { _ in
                    all.randomElement(using: &random)!
                }
                waiting.append((number, chosen))
                loop.perform(inModes: chosen) { ran.append(number) }
                guard Int.random(in: 0..<7, using: &random) == 0 else { continue }
                let mode = modes.randomElement(using: &random)!
                let isCommon = mode == .default || mode == "common too"
                func isAllowed(_ block: (number: Int, modes: [LoopMode])) -> Bool {
                    block.modes.contains(mode) || (isCommon && block.modes.contains(.common))
                }
                let expected = waiting.filter(isAllowed).map(\.number)
                waiting.removeAll(where: isAllowed)
                ran = []
                loop.run(mode: mode, for: .zero)
                // Two passes an iteration.
                if limit != .max { #expect(ran.count <= 2 * limit) }
                while ran.count < expected.count {
                    let count = ran.count
                    loop.run(mode: mode, for: .zero)
                    if ran.count == count { break }
                }
                #expect(ran == expected)
            }
        }
    }

    /// Goal: a limit changes when blocks run, not their order, and it holds for all of them. Method: blocks that wait
    /// for the mode of a nested run, for another mode, and in no mode that exists.
    @Test func `a limit holds for blocks that waited for another mode`() {
        for mode in [LoopMode.default, "other", "without items"] {
            onFreshThread {
                let loop = EventRunLoop.current
                loop.blocksPerPass = 10
                loop.add(LoopSource { _ in }, toMode: .default)
                loop.add(LoopSource { _ in }, toMode: "other")
                nonisolated(unsafe) var log: [Int] = []
                for number in 0..<1_000 { loop.perform(inMode: mode) { log.append(number) } }
                loop.run(mode: "third", for: .zero)
                if mode != .default { loop.run(for: .zero) }
                #expect(log.isEmpty)
                loop.run(mode: mode, for: .zero)
                #expect((1...20).contains(log.count), "\(mode)")
                for _ in 0..<100 { loop.run(mode: mode, for: .zero) }
                #expect(log == Array(0..<1_000), "\(mode)")
            }
        }
    }

    /// A nested run is given what was posted since the drain began, as without a limit.
    @Test(arguments: 1...4, [3, 300])
    func `a limit keeps the order under nesting`(limit: Int, posted: Int) {
        onFreshThread {
            let loop = EventRunLoop.current
            loop.blocksPerPass = limit
            loop.add(LoopSource { _ in }, toMode: .default)
            nonisolated(unsafe) var log: [Int] = []
            for number in 1...10 {
                loop.perform {
                    log.append(number)
                    guard number == 2 else { return }
                    for late in 0..<posted { loop.perform { log.append(100 + late) } }
                    for _ in 0..<2 { loop.run(for: .zero) }
                }
            }
            for _ in 0..<400 { loop.run(for: .zero) }
            #expect(log.filter { $0 < 100 } == Array(1...10))
            #expect(log.filter { $0 >= 100 } == Array(100..<100 + posted))
        }
    }

    @Test func `four posting threads lose nothing and keep their own order`() {
        let perThread = 20_000
        onFreshThread {
            let loop = EventRunLoop.current
            loop.add(LoopSource { _ in }, toMode: .default)
            nonisolated(unsafe) var next = [Int](repeating: 0, count: 4)
            nonisolated(unsafe) var isOrdered = true
            nonisolated(unsafe) var count = 0
            for producer in 0..<4 {
                Thread {
                    for number in 0..<perThread {
                        loop.post {
                            isOrdered = isOrdered && next[producer] == number
                            next[producer] += 1
                            count += 1
                            if count == 4 * perThread { loop.stop() }
                        }
                    }
                }.start()
            }
            #expect(loop.run(mode: .default) == .stopped)
            #expect(isOrdered)
            #expect(next == [Int](repeating: perThread, count: 4))
        }
    }

    /// Taken from malloc, the segments of 10 million posts stayed with the process.
    @Test func `the memory of a flood goes back to the system once it has run`() {
        onFreshThread {
            let loop = EventRunLoop.current
            loop.add(LoopSource { _ in }, toMode: .default)
            nonisolated(unsafe) var ran = 0
            let small = loop.blocks.memorySize
            #expect(small < 100_000)
            for _ in 0..<120_000 { loop.perform { ran += 1 } }
            #expect(loop.blocks.memorySize > 3_500_000)
            loop.run(for: .zero)
            #expect(loop.blocks.memorySize < 2_000_000)
            #expect(ran == 120_000)
        }
    }

    @Test func `a block is let go of once it has run, or when the thread ends`() {
        final class Token: Sendable {
            let alive: Mutex<Int>.Reference
            init(_ alive: Mutex<Int>.Reference) {
                self.alive = alive
                alive.mutex.withLock { $0 += 1 }
            }
            deinit { alive.mutex.withLock { $0 -= 1 } }
        }
        let alive = Mutex<Int>.Reference()
        onFreshThread {
            let loop = EventRunLoop.current
            for _ in 0..<10 {
                let token = Token(alive)
                loop.perform { _ = token }
            }
            #expect(alive.mutex.withLock { $0 } == 10)
            loop.run(for: .zero)
            #expect(alive.mutex.withLock { $0 } == 0)
            let token = Token(alive)
            loop.perform { _ = token }
        }
        #expect(alive.mutex.withLock { $0 } == 0)
    }
}

extension Mutex<Int> {
    final class Reference: Sendable { let mutex = Mutex(0) }
}
