import CLinux
import Foundation
import LoopConformance
import StallModel
import Testing

@testable import StallRunLoop

/// Goal: another loop can wait for this one by a descriptor alone, or by a deadline as well, and misses nothing.
@Suite struct EmbeddingTests {
    /// Method: the other loop is poll(2). Without a timeout it would wait for ever for what the descriptor does not show.
    @Test func `a foreign loop is woken for posts, timers, descriptors and signals`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            let ready = stall_eventfd_create()
            defer { stall_descriptor_close(ready) }
            nonisolated(unsafe) var log: [String] = []
            let source = LoopSource { _ in log.append("source") }
            loop.add(source, toMode: .default)
            try loop.add(
                DescriptorSource(descriptor: ready) { _, _ in
                    _ = stall_eventfd_take(ready)
                    log.append("descriptor")
                }, toMode: .default)
            loop.post { log.append("before") }
            let descriptor = try loop.fileDescriptor()
            func serve(until count: Int) {
                for _ in 0..<20 where log.count < count {
                    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                    #expect(poll(&request, 1, 20_000) == 1)
                    loop.run(for: .zero)
                }
            }
            serve(until: 1)
            let acts: [@Sendable () -> Void] = [
                { loop.post { log.append("post") } },
                { loop.perform(after: .milliseconds(1)) { log.append("timer") } },
                { stall_eventfd_write(ready) },
                {
                    source.signal()
                    loop.wakeUp()
                },
            ]
            for (index, act) in acts.enumerated() {
                for isElsewhere in [false, true] {
                    if isElsewhere { onFreshThread(act) } else { act() }
                    serve(until: 2 + 2 * index + (isElsewhere ? 1 : 0))
                }
            }
            let names = ["post", "timer", "descriptor", "source"]
            #expect(log == ["before"] + names.flatMap { [$0, $0] })
            // Nothing is left to do, and the foreign loop would sleep.
            loop.run(for: .zero)
            var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            #expect(poll(&request, 1, 0) == 0)
            #expect(loop.pollTimeout() == -1)
        }
    }

    @Test func `idle work waits for a run that may sleep`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var log: [String] = []
            loop.add(LoopSource { _ in }, toMode: .default)
            let descriptor = try loop.fileDescriptor()
            for number in 1...2 { loop.performWhenIdle { log.append("unit \(number)") } }
            var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            for _ in 0..<5 { loop.run(for: .zero) }
            #expect(log == [])
            // The units do not keep the other loop from sleeping.
            #expect(poll(&request, 1, 0) == 0)
            #expect(loop.pollTimeout() == -1)
            loop.run(for: .milliseconds(20))
            #expect(log == ["unit 1", "unit 2"])
        }
    }

    @Test func `a mode without items does not stay readable`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            let descriptor = try loop.fileDescriptor()
            func isReadable() -> Bool {
                var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                return poll(&request, 1, 0) == 1
            }
            loop.run(for: .zero)
            #expect(!isReadable())
            loop.wakeUp()
            loop.run(for: .zero)
            #expect(!isReadable())
            let timer = LoopTimer(after: .milliseconds(1)) { _ in }
            loop.add(timer, toMode: .default)
            loop.run(for: .zero)
            onFreshThread { timer.invalidate() }
            usleep(2_000)
            loop.run(for: .zero)
            #expect(!isReadable())
            nonisolated(unsafe) var isServed = false
            onFreshThread { loop.post { isServed = true } }
            #expect(isReadable())
            loop.run(for: .zero)
            #expect(isServed)
        }
    }

    @Test func `a signalled source that is gone leaves nothing to do`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            let descriptor = try loop.fileDescriptor()
            for isRemoved in [false, true] {
                let source = LoopSource { _ in }
                loop.add(source, toMode: .default)
                source.signal()
                #expect(loop.pollTimeout() == 0)
                if isRemoved {
                    loop.remove(source, fromMode: .default)
                } else {
                    source.invalidate()
                }
                #expect(loop.pollTimeout() == -1)
                for _ in 0..<2 { loop.run(for: .zero) }
                var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                #expect(poll(&request, 1, 0) == 0)
            }
        }
    }

    /// Method: another thread acts at each place of a run, and the observer takes the report, as the run's look at the kernel does when
    /// it comes just before it. The other loop waits for the descriptor alone.
    @Test func `what comes while a run looks at other things is told by the descriptor`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var (done, made) = (0, 0)
            let source = LoopSource { _ in done += 1 }
            loop.add(source, toMode: .default)
            let descriptor = try loop.fileDescriptor()
            func isReadable() -> Bool {
                var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                return poll(&request, 1, 0) == 1
            }
            let acts: [@Sendable () -> Void] = [
                { loop.post { done += 1 } },
                {
                    source.signal()
                    loop.wakeUp()
                },
            ]
            for act in acts {
                for activity in [LoopActivity.entry, .beforeTimers, .beforeSources, .exit] {
                    let observer = LoopObserver(activities: activity, repeats: false) { _, _ in
                        made += 1
                        onFreshThread(act)
                        var report = stall_ready()
                        while stall_poller_poll(descriptor, &report, 1) > 0 {}
                    }
                    loop.add(observer, toMode: .default)
                    loop.post {}
                    for _ in 0..<5 where isReadable() { loop.run(for: .zero) }
                    #expect(done == made && made > 0)
                    #expect(!isReadable())
                }
            }
        }
    }

    @Test func `a timer that is moved nearer between runs is told by the descriptor`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var calls = 0
            let timer = LoopTimer(after: .seconds(1_000), every: .seconds(1_000)) { _ in calls += 1
            }
            loop.add(timer, toMode: .default)
            let descriptor = try loop.fileDescriptor()
            func serve() {
                let before = calls
                for _ in 0..<20 where calls == before {
                    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                    #expect(poll(&request, 1, 20_000) == 1)
                    loop.run(for: .zero)
                }
            }
            loop.run(for: .zero)
            timer.nextFire = MonotonicInstant(nanoseconds: stall_monotonic_ns() + 1_000_000)
            serve()
            timer.tolerance = .seconds(400)
            timer.nextFire = MonotonicInstant(nanoseconds: stall_monotonic_ns() + 1_000_000)
            loop.run(for: .zero)
            timer.tolerance = .zero
            serve()
            #expect(calls == 2)
        }
    }

    @Test func `each of two modes has its timers`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var log: [String] = []
            loop.add(
                LoopTimer(after: .milliseconds(1)) { _ in log.append("first") }, toMode: "first")
            loop.add(LoopTimer(after: .seconds(1_000)) { _ in }, toMode: "second")
            let descriptor = try loop.fileDescriptor(inMode: "first")
            _ = try loop.fileDescriptor(inMode: "second")
            var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            for _ in 0..<20 where log.isEmpty {
                #expect(poll(&request, 1, 20_000) == 1)
                loop.run(mode: "first", for: .zero)
            }
            #expect(log == ["first"])
        }
    }

    @Test func `the deadline is now for what waits, then that of the next timer`() {
        onFreshThread {
            let loop = EventRunLoop.current
            #expect(loop.nextDeadline() == nil)
            let timer = LoopTimer(after: .seconds(1_000)) { _ in }
            loop.add(timer, toMode: .default)
            #expect(loop.nextDeadline() == timer.nextFire)
            #expect((900_000...1_000_000).contains(loop.pollTimeout()))
            loop.perform {}
            #expect(loop.pollTimeout() == 0)
            loop.run(for: .zero)
            #expect(loop.nextDeadline() == timer.nextFire)
            let source = LoopSource { _ in }
            loop.add(source, toMode: .default)
            source.signal()
            #expect(loop.pollTimeout() == 0)
        }
    }

    @Test func `a limit of blocks gives timers their turn, and keeps the order`() {
        onFreshThread {
            let loop = EventRunLoop.current
            loop.blocksPerPass = 3
            nonisolated(unsafe) var log: [Int] = []
            let timer = loop.schedule(every: .nanoseconds(1)) { _ in log.append(0) }
            loop.perform(inMode: "other") { log.append(99) }
            for number in 1...300 { loop.perform { log.append(number) } }
            for _ in 0..<400 where log.last != 300 { loop.run(for: .zero) }
            #expect(log.filter { $0 > 0 } == Array(1...300))
            // Two passes an iteration, and a timer in each.
            #expect(log.split(separator: 0).allSatisfy { $0.count <= 6 })
            timer.invalidate()
            log = []
            loop.run(mode: "other", for: .zero)
            #expect(log == [99])
            // It does not sleep while some are left.
            for number in 1...10 { loop.perform { log.append(number) } }
            loop.perform { loop.stop() }
            loop.add(LoopSource { _ in }, toMode: .default)
            #expect(loop.run(mode: .default, for: .seconds(20)) == .stopped)
            #expect(log == [99] + Array(1...10))
        }
    }
}
