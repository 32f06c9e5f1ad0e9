import Dispatch
import Glibc
import LoopConformance
import StallModel
import TestSupport
import Testing

@testable import StallRunLoop

/// Goal: a source leaves all modes of all its loops, in whatever order and from whatever thread, and points to no loop
/// that has ended. Method: the places are compared with a plain list of pairs; then the same through sources on three
/// loops.
@Suite struct ItemPlacesTests {
    private struct Pair: Equatable {
        let loop: UInt64
        let mode: LoopMode
    }

    @Test func `places are those of a plain list, however many, and in its order`() throws {
        let threads = try (0..<3).map { try LoopThread(name: "places-\($0)") }
        let loops = threads.map(\.loop)
        let modes: [LoopMode] = [.default, .common, "p1", "p2"]
        var random = SeededGenerator(seed: 18)
        for _ in 0..<200 {
            var places = ItemPlaces()
            var list: [Pair] = []
            for slot in 0..<UInt32(30) {
                let loop = loops[Int.random(in: 0..<3, using: &random)]
                let mode = modes.randomElement(using: &random)!
                let pair = Pair(loop: loop.number, mode: mode)
                #expect(places.contains(mode, of: loop) == list.contains(pair))
                switch Int.random(in: 0..<8, using: &random) {
                case 0:
                    let taken = Self.pairs(places.removeAll(of: loop), loops)
                    #expect(taken == list.filter { $0.loop == loop.number })
                    list.removeAll { $0.loop == loop.number }
                case 1, 2:
                    #expect((places.remove(mode, of: loop) != nil) == list.contains(pair))
                    list.removeAll { $0 == pair }
                default:
                    guard !list.contains(pair) else { continue }
                    places.append(ItemPlace(loop, mode, slot: slot, items: nil))
                    list.append(pair)
                }
                #expect(Self.pairs(places, loops) == list)
                #expect(places.isEmpty == list.isEmpty)
                #expect(places.anyLoop?.number == list.first?.loop)
            }
        }
        for thread in threads { thread.stop() }
    }

    private static func pairs(_ places: ItemPlaces, _ loops: [EventRunLoop]) -> [Pair] {
        var pairs: [Pair] = []
        places.forEach { place in
            let loop = loops.first {
                Unmanaged.passUnretained($0).toOpaque() == place.loop.toOpaque()
            }
            pairs.append(Pair(loop: loop?.number ?? 0, mode: place.mode))
        }
        return pairs
    }

    @Test(arguments: [false, true])
    func `an invalidated source leaves all modes of all loops and is cancelled once in each`(
        fromALoopOfItsOwn: Bool
    ) throws {
        let threads = try (0..<3).map { try LoopThread(name: "places-\($0)") }
        let cancelled = Locked<[Pair]>([])
        let source = LoopSource(
            onCancel: { loop, mode in
                cancelled.withLock { $0.append(Pair(loop: loop.number, mode: mode)) }
            }, handler: { _ in })
        onFreshThread {
            if fromALoopOfItsOwn { EventRunLoop.current.add(source, toMode: .default) }
            for thread in threads {
                for mode in [LoopMode.default, "p1", "p2"] { thread.loop.add(source, toMode: mode) }
            }
            let own =
                fromALoopOfItsOwn ? [Pair(loop: EventRunLoop.current.number, mode: .default)] : []
            source.invalidate()
            let others = threads.flatMap { thread in
                [LoopMode.default, "p1", "p2"].map { Pair(loop: thread.loop.number, mode: $0) }
            }
            cancelled.withLock { #expect($0 == own + others) }
        }
        for thread in threads {
            #expect(!thread.loop.contains(source, inMode: .default))
            #expect(!thread.loop.contains(source, inMode: "p2"))
            thread.stop()
        }
    }

    @Test func `a source may be invalidated and signalled while the thread of its loop ends`()
        throws
    {
        for _ in 0..<200 {
            let source = LoopSource { _ in }
            let thread = try LoopThread(name: "ends")
            thread.loop.add(source, toMode: .common)
            thread.loop.add(source, toMode: "p1")
            let isDone = DispatchSemaphore(value: 0)
            let helper = try LoopThread(name: "invalidates")
            try helper.submit {
                source.signal()
                source.invalidate()
                isDone.signal()
            }
            thread.stop()
            isDone.wait()
            source.places.withLock { #expect($0.isEmpty) }
            helper.stop()
        }
    }
}
