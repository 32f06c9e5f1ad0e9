import CLinux
import Foundation
import LoopConformance
import StallModel
import Testing

@testable import StallRunLoop

/// Goal: many modes are found like few, the common modes cannot be run, and no mark of a wake-up outlives its
/// iteration. Each of these tests catches a mutant of `Tests/Truth/Mutants` that no row of the golden table sees.
@Suite struct ModesAndMarksTests {
    @Test func `a run in an unknown mode does not make it, and one with a block for it does`() {
        onFreshThread {
            let loop = EventRunLoop.current
            #expect(loop.run(mode: "unknown", for: .zero) == .finished)
            #expect(loop.allModes == [.default])
            nonisolated(unsafe) var calls = 0
            loop.perform(inMode: "known") { calls += 1 }
            #expect(loop.run(mode: "known", for: .zero) == .timedOut)
            #expect(calls == 1)
        }
    }

    @Test func `the handler of a repeating timer sees when its next call is due`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var seen: [MonotonicInstant?] = []
            let start = MonotonicInstant(nanoseconds: 1_000)
            loop.add(
                LoopTimer(at: start, every: .seconds(1_000)) { timer in
                    seen.append(loop.nextTimerFire())
                    timer.nextFire = timer.nextFire + .seconds(1_500)
                    seen.append(loop.nextTimerFire())
                    seen.append(timer.nextFire)
                }, toMode: .default)
            let first = loop.nextTimerFire()!
            loop.run(for: .zero)
            #expect(
                seen == [first + .seconds(1_000), first + .seconds(1_500), first + .seconds(1_500)])
            #expect(loop.nextTimerFire() == first + .seconds(1_500))
            // One that is called once has no next call.
            let other = LoopTimer(at: start) { _ in seen = [loop.nextTimerFire(inMode: "other")] }
            loop.add(other, toMode: "other")
            loop.run(mode: "other", for: .zero)
            #expect(seen == [nil])
        }
    }

    /// In modes that were common before and after it was added, and in those that are not.
    @Test func `an item leaves the common modes and no other`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            let number = stall_eventfd_create()
            defer { stall_descriptor_close(number) }
            let modes = (0..<40).map { LoopMode("common \($0)") }
            let own: [LoopMode] = ["own", "other own"]
            modes[..<20].forEach(loop.addCommonMode)
            let timer = LoopTimer(after: .seconds(1_000)) { _ in }
            let observer = LoopObserver { _, _ in }
            nonisolated(unsafe) var left: [LoopMode] = []
            let source = LoopSource(onCancel: { left.append($1) }) { _ in }
            let descriptor = DescriptorSource(descriptor: number) { _, _ in }
            for mode in [own[0], modes[3], .common, own[1], .common] {
                loop.add(timer, toMode: mode)
                loop.add(observer, toMode: mode)
                loop.add(source, toMode: mode)
                try loop.add(descriptor, toMode: mode)
            }
            modes[20...].forEach(loop.addCommonMode)
            func places() -> [[LoopMode]] {
                let all = [.default] + modes + own + [.common]
                return [
                    all.filter { loop.contains(timer, inMode: $0) },
                    all.filter { loop.contains(observer, inMode: $0) },
                    all.filter { loop.contains(source, inMode: $0) },
                    all.filter { loop.contains(descriptor, inMode: $0) },
                ]
            }
            #expect(places() == Array(repeating: [.default] + modes + own + [.common], count: 4))
            loop.remove(timer, fromMode: .common)
            loop.remove(observer, fromMode: .common)
            loop.remove(source, fromMode: .common)
            loop.remove(descriptor, fromMode: .common)
            #expect(places() == Array(repeating: own, count: 4))
            #expect(Set(left) == Set([.default] + modes) && left.count == 41)
            // Not being a common item any more, it stays where it is.
            loop.remove(timer, fromMode: .common)
            loop.remove(source, fromMode: .common)
            #expect(places() == Array(repeating: own, count: 4))
        }
    }

    @Test func `each of many modes exists once, and holds what was added to it`() {
        onFreshThread {
            let loop = EventRunLoop.current
            let modes = (0..<40).map { LoopMode("one of many \($0)") }
            nonisolated(unsafe) var fired: [Int] = []
            for (number, mode) in modes.enumerated() {
                let timer = LoopTimer(after: .zero) { _ in fired.append(number) }
                loop.add(timer, toMode: mode)
                #expect(loop.contains(timer, inMode: mode))
                #expect(loop.nextTimerFire(inMode: mode) != nil)
            }
            #expect(loop.allModes == [.default] + modes)
            for mode in modes { #expect(loop.run(mode: mode, for: .zero) == .timedOut) }
            #expect(fired == Array(0..<40))
            #expect(loop.allModes.count == 41)
        }
    }

    @Test func `a run in the common modes finishes at once, runs nothing and makes no mode`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var ran = 0
            loop.add(LoopSource { _ in }, toMode: .common)
            loop.perform(inMode: .common) { ran += 1 }
            #expect(loop.run(mode: .common, for: .zero) == .finished)
            #expect(ran == 0)
            #expect(loop.allModes == [.default])
            #expect(loop.run(mode: .default, for: .zero) == .timedOut)
            #expect(ran == 1)
        }
    }

    @Test func `a wake-up that kept the loop from sleeping is not pending afterwards`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var dumps: [String] = []
            loop.add(LoopSource { _ in }, toMode: .default)
            let observer = LoopObserver(activities: [.beforeWaiting, .afterWaiting]) {
                _, activity in
                if activity == .beforeWaiting { loop.wakeUp() } else { loop.stop() }
                dumps.append(loop.debugDescription)
            }
            loop.add(observer, toMode: .default)
            #expect(loop.run(mode: .default) == .stopped)
            #expect(dumps.count == 2)
            #expect(dumps.first?.contains("wake-ups: counted, one pending\n") == true, "\(dumps)")
            #expect(dumps.last?.contains("wake-ups: dropped\n") == true, "\(dumps)")
        }
    }

    @Test func `a wake-up of the last iteration is over when the run is`() {
        onFreshThread {
            let loop = EventRunLoop.current
            loop.add(LoopSource { _ in }, toMode: .default)
            let observer = LoopObserver(activities: .exit) { _, _ in
                loop.wakeUp()
                #expect(loop.debugDescription.contains("wake-ups: dropped, one pending\n"))
            }
            loop.add(observer, toMode: .default)
            #expect(loop.run(mode: .default, for: .zero) == .timedOut)
            #expect(loop.debugDescription.contains("wake-ups: dropped\n"))
        }
    }

    @Test func `a write to the descriptor without a mark does not end a wait`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var waits = 0
            loop.add(LoopSource { _ in }, toMode: .default)
            loop.add(
                LoopObserver(activities: .afterWaiting) { _, _ in waits += 1 }, toMode: .default)
            let writer = Thread {
                while !loop.isWaiting { sched_yield() }
                for _ in 0..<5 {
                    stall_eventfd_write(loop.wake.descriptor)
                    usleep(1_000)
                }
                loop.stop()
            }
            writer.start()
            #expect(loop.run(mode: .default) == .stopped)
            #expect(waits == 1)
        }
    }

    @Test func `a stop is not pending once it has ended its run`() {
        onFreshThread {
            let loop = EventRunLoop.current
            let source = LoopSource { _ in
                loop.stop()
                let isPending = loop.wake.isPending
                #expect(isPending)
            }
            loop.add(source, toMode: .default)
            source.signal()
            #expect(loop.run(mode: .default) == .stopped)
            let isPending = loop.wake.isPending
            #expect(!isPending)
        }
    }

    @Test func `a timer that its handler adds to another mode does not fire in a run inside of it`()
    {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var (depth, deepest, fired) = (0, 0, 0)
            loop.schedule(every: .nanoseconds(1)) { timer in
                depth += 1
                fired += 1
                deepest = max(deepest, depth)
                if depth == 1 {
                    loop.add(timer, toMode: "inner")
                    _ = loop.run(mode: .default, for: .zero)
                    _ = loop.run(mode: "inner", for: .zero)
                }
                depth -= 1
                if fired == 2 { timer.invalidate() }
            }
            #expect(loop.run(mode: .default) == .finished)
            #expect(deepest == 1)
            #expect(fired == 2)
        }
    }

    /// One that is still watched wakes the loop again and again while it is ready, and nothing is called that would
    /// show it.
    @Test func `the kernel no longer watches a descriptor that was removed`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            var ends: [CInt] = [0, 0]
            pipe(&ends)
            defer { ends.forEach { close($0) } }
            let source = DescriptorSource(descriptor: ends[0]) { _, _ in }
            func isWatched() -> Bool {
                let epoll = loop.defaultItems.epoll(of: loop)
                let file = "/proc/self/fdinfo/\(epoll)"
                let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
                return text.split(separator: "\n").contains {
                    $0.split(separator: " ").prefix(2) == ["tfd:", "\(ends[0])"]
                }
            }
            try loop.add(source, toMode: .default)
            #expect(isWatched())
            loop.remove(source, fromMode: .default)
            #expect(!isWatched())
            try loop.add(source, toMode: .default)
            #expect(isWatched())
            source.invalidate()
            #expect(!isWatched())
        }
    }
}
