import CLinux
import Foundation
import LoopConformance
import StallModel
import Testing

@testable import StallRunLoop

/// Goal: a watchdog that reads the beacon knows what the loop does. Method: read it from inside of the callouts, where
/// the loop cannot move on, and from another thread once the loop says that it waits.
@Suite struct BeaconTests {
    struct Reading: Equatable {
        var status: Int32
        var phase: LoopPhase
        var mode: String?
    }

    static func read(_ loop: EventRunLoop) -> Reading {
        Reading(
            status: Int32(stall_beacon_word(loop.beacon) >> 56),
            phase: LoopPhase(rawValue: UInt8(stall_beacon_callout(loop.beacon) >> 56))!,
            mode: modeName(of: loop))
    }

    /// Asks again where another test's loop has the names: they are not waited for.
    private static func modeName(of loop: EventRunLoop) -> String? {
        for _ in 0..<1000 {
            if let name = loop.modeName(number: stall_beacon_mode(loop.beacon)) { return name }
            sched_yield()
        }
        return nil
    }

    @Test func `every kind of callout is busy, and says what it is`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var seen: [LoopPhase: Reading] = [:]
            let note: @Sendable (LoopPhase) -> Void = { seen[$0] = Self.read(loop) }
            let descriptor = stall_eventfd_create()
            stall_eventfd_write(descriptor)
            let source = LoopSource { _ in note(.source) }
            loop.add(source, toMode: .default)
            let ready = DescriptorSource(descriptor: descriptor) { source, _ in
                _ = stall_eventfd_take(source.descriptor)
                note(.descriptor)
                loop.stop()
            }
            #expect(throws: Never.self) { try loop.add(ready, toMode: .default) }
            loop.add(LoopTimer(after: .zero) { _ in note(.timer) }, toMode: .default)
            loop.add(
                LoopObserver(activities: .entry) { _, _ in note(.observer) }, toMode: .default)
            loop.perform { note(.block) }
            source.signal()
            #expect(loop.run(mode: .default) == .stopped)
            for phase in [LoopPhase.source, .descriptor, .timer, .observer, .block] {
                #expect(
                    seen[phase] == Reading(status: STALL_LOOP_BUSY, phase: phase, mode: "default"))
            }
            #expect(Self.read(loop).status == STALL_LOOP_IDLE)
            #expect(Self.read(loop).phase == .unknown)
            #expect(stall_beacon_thread(loop.beacon) == stall_gettid())
            close(descriptor)
        }
    }

    @Test func `after a nested run the outer callout is what runs`() {
        onFreshThread {
            let loop = EventRunLoop.current
            loop.add(LoopSource { _ in }, toMode: "inner")
            nonisolated(unsafe) var readings: [Reading] = []
            loop.perform {
                readings.append(Self.read(loop))
                loop.perform(inMode: "inner") { readings.append(Self.read(loop)) }
                loop.run(mode: "inner", for: .zero)
                readings.append(Self.read(loop))
            }
            loop.run(for: .zero)
            #expect(
                readings == [
                    Reading(status: STALL_LOOP_BUSY, phase: .block, mode: "default"),
                    Reading(status: STALL_LOOP_BUSY, phase: .block, mode: "inner"),
                    Reading(status: STALL_LOOP_BUSY, phase: .block, mode: "default"),
                ])
        }
    }

    @Test func `a sleeping loop waits, and is idle after its run`() {
        let ready = DispatchSemaphore(value: 0)
        let ended = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var loop: EventRunLoop!
        Thread {
            loop = .current
            loop.add(LoopSource { _ in }, toMode: .default)
            ready.signal()
            loop.run()
            ended.signal()
        }.start()
        ready.wait()
        while Self.read(loop).status != STALL_LOOP_WAITING { sched_yield() }
        #expect(loop.isWaiting)
        #expect(loop.currentMode == .default)
        loop.stop()
        ended.wait()
        #expect(Self.read(loop).status == STALL_LOOP_IDLE)
        #expect(loop.currentMode == nil)
    }
}
