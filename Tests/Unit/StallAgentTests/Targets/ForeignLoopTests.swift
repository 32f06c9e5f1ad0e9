import CLinux
import Foundation
import Synchronization
import Testing

/// Goal: observing a CFRunLoop may end on any thread at any moment, unnoticed by the loop's own thread.
/// Method: a thread that runs its loop as fast as it can is observed and released from another one, repeatedly. Each
/// beacon is retained, so that the test sees whether the observation has released it.
@Suite struct ForeignLoopTests {
    private final class Observed: @unchecked Sendable {
        // Unchecked because `attach` and `take` pass the pointer through the lock.
        private let loop = Mutex<Int>(0)
        let isOver = Atomic<Bool>(false)

        /// Attaches unless the last one was not consumed yet.
        func attach() {
            loop.withLock { address in
                guard address == 0 else { return }
                address = Int(bitPattern: stall_foreign_loop_attach())
            }
        }

        func take() -> OpaquePointer? {
            loop.withLock { address in
                defer { address = 0 }
                return OpaquePointer(bitPattern: address)
            }
        }
    }

    @Test func `letting go of a running loop from another thread harms neither`() async {
        let observed = Observed()
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let thread = Thread {
            // Without anything in it a loop does not run.
            RunLoop.current.add(Timer(timeInterval: 1e9, repeats: true) { _ in }, forMode: .default)
            while !observed.isOver.load(ordering: .acquiring) {
                observed.attach()
                _ = RunLoop.current.run(mode: .default, before: Date())
            }
            end.finish()
        }
        thread.start()
        var beacons: [UnsafeMutablePointer<stall_beacon>] = []
        while beacons.count < 500 {
            guard let loop = observed.take() else {
                sched_yield()
                continue
            }
            let beacon = stall_foreign_loop_beacon(loop)
            stall_beacon_retain(beacon)
            beacons.append(beacon)
            stall_foreign_loop_detach(loop)
        }
        observed.isOver.store(true, ordering: .releasing)
        for await _ in ended {}
        if let last = observed.take() { stall_foreign_loop_detach(last) }
        #expect(beacons.allSatisfy { $0.pointee.references == 1 })
        // A beacon that no observer has written to says no time.
        #expect(beacons.contains { stall_beacon_word($0) << 8 != 0 })
        for beacon in beacons { stall_beacon_release(beacon) }
    }

    private final class NestedPlay: Sendable {
        let loop = Atomic<Int>(0)
        let isNested = Atomic<Bool>(false)
        let isCorrected = Atomic<Bool>(false)
        var pointer: OpaquePointer { OpaquePointer(bitPattern: loop.load(ordering: .acquiring))! }
        var word: UInt64 { stall_beacon_word(stall_foreign_loop_beacon(pointer)) }
    }

    /// Its mode is not observed until the watchdog asks: its exit is seen, its entry was not.
    @Test func `the callout around a nested run in a custom mode continues after it`() async {
        let (statuses, reported) = AsyncStream.makeStream(of: UInt64.self)
        let play = NestedPlay()
        let thread = Thread {
            let outer = Timer(timeInterval: 0, repeats: false) { _ in
                let loop = stall_foreign_loop_attach()!
                play.loop.store(Int(bitPattern: loop), ordering: .releasing)
                let own = RunLoop.Mode("own")
                let inner = Timer(timeInterval: 0, repeats: false) { _ in
                    play.isNested.store(true, ordering: .releasing)
                    while !play.isCorrected.load(ordering: .acquiring) { sched_yield() }
                    reported.yield(play.word >> 56)
                }
                RunLoop.current.add(inner, forMode: own)
                _ = RunLoop.current.run(mode: own, before: .distantFuture)
                reported.yield(play.word >> 56)
                stall_foreign_loop_detach(loop)
            }
            RunLoop.current.add(outer, forMode: .default)
            _ = RunLoop.current.run(mode: .default, before: .distantFuture)
            reported.finish()
        }
        thread.start()
        while !play.isNested.load(ordering: .acquiring) { sched_yield() }
        var mode = [CChar](repeating: 0, count: 64)
        // Attaching has observed the existing modes; the new one is observed when the watchdog asks.
        stall_foreign_loop_correct(
            play.pointer, play.word, stall_monotonic_ns(), &mode)
        play.isCorrected.store(true, ordering: .releasing)
        var seen: [UInt64] = []
        for await status in statuses { seen.append(status) }
        #expect(mode.prefix { $0 != 0 }.map { UInt8($0) } == Array("own".utf8))
        #expect(seen == [UInt64(STALL_LOOP_BUSY), UInt64(STALL_LOOP_BUSY)])
    }
}
