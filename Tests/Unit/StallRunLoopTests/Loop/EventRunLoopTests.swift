import CLinux
import Foundation
import LoopConformance
import StallModel
import Testing

@testable import StallRunLoop

/// Goal: what EventRunLoop promises beyond CFRunLoop's table: descriptors, tracking, handing over work, misuse.
@Suite struct EventRunLoopTests {
    @Test func `a descriptor is served while it is ready, and none of its bytes is read`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            var ends: [CInt] = [0, 0]
            pipe(&ends)
            defer { ends.forEach { close($0) } }
            let input = ends[0]
            nonisolated(unsafe) var received = ""
            let source = DescriptorSource(descriptor: input) { source, events in
                #expect(events.contains(.readable))
                var byte: UInt8 = 0
                Glibc.read(input, &byte, 1)
                received.append(Character(UnicodeScalar(byte)))
                if received.count == 5 { source.invalidate() }
            }
            try loop.add(source, toMode: .default)
            write(ends[1], "hello", 5)
            #expect(loop.run(mode: .default) == .finished)
            #expect(received == "hello")
        }
    }

    @Test(arguments: [EventRunLoop.DescriptorDelivery.strict, .batch])
    func `two sources on one descriptor each get their events`(
        delivery: EventRunLoop.DescriptorDelivery
    ) throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            loop.descriptorDelivery = delivery
            var ends: [CInt] = [0, 0]
            socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends)
            defer { ends.forEach { close($0) } }
            write(ends[1], "x", 1)
            nonisolated(unsafe) var log: Set<String> = []
            try loop.add(
                DescriptorSource(descriptor: ends[0], events: .readable) { source, _ in
                    log.insert("read")
                    source.invalidate()
                }, toMode: .default)
            try loop.add(
                DescriptorSource(descriptor: ends[0], events: .writable) { source, _ in
                    log.insert("write")
                    source.invalidate()
                }, toMode: .default)
            #expect(loop.run(mode: .default) == .finished)
            #expect(log == ["read", "write"])
        }
    }

    /// Both are there before the iteration begins; the block is there only once the source was served.
    @Test func `blocks of a source's handler run before the event of the same iteration`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var log: [String] = []
            let source = LoopSource { source in
                log.append("source")
                source.invalidate()
                loop.perform { log.append("block") }
            }
            loop.add(source, toMode: .default)
            loop.add(LoopTimer(after: .zero) { _ in log.append("timer") }, toMode: .default)
            source.signal()
            #expect(loop.run(mode: .default) == .finished)
            #expect(log == ["source", "block", "timer"])
        }
    }

    @Test func `always ready descriptors and timers take turns`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            let descriptors = (0..<3).map { _ in stall_eventfd_create() }
            defer { descriptors.forEach { close($0) } }
            nonisolated(unsafe) var counts = [Int](repeating: 0, count: 4)
            for (index, descriptor) in descriptors.enumerated() {
                stall_eventfd_write(descriptor)
                try loop.add(
                    DescriptorSource(descriptor: descriptor) { _, _ in counts[index] += 1 },
                    toMode: .default)
            }
            loop.schedule(every: .nanoseconds(1)) { _ in
                counts[3] += 1
                if counts[3] == 30 { loop.stop() }
            }
            loop.run()
            #expect(counts.allSatisfy { $0 >= 9 }, "\(counts)")
        }
    }

    @Test(arguments: [true, false])
    func `a batch serves what is ready in one iteration, without what an earlier handler removed`(
        invalidates: Bool
    ) throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            loop.descriptorDelivery = .batch
            let descriptors = (0..<3).map { _ in stall_eventfd_create() }
            defer { descriptors.forEach { close($0) } }
            nonisolated(unsafe) var sources: [DescriptorSource] = []
            nonisolated(unsafe) var served = 0
            for descriptor in descriptors {
                stall_eventfd_write(descriptor)
                let source = DescriptorSource(descriptor: descriptor) { source, _ in
                    served += 1
                    for other in sources where other !== source && served == 2 {
                        if invalidates {
                            other.invalidate()
                        } else {
                            loop.remove(other, fromMode: .default)
                        }
                    }
                    _ = stall_eventfd_take(source.descriptor)
                }
                sources.append(source)
                try loop.add(source, toMode: .default)
            }
            loop.run(for: .zero)
            #expect(served == 2)
        }
    }

    /// Foundation's loop does the same: `stop()` ends one of the runs that it is made of.
    @Test func `run(until:) ends at its instant, not at a stop`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var stops = 0
            // The mode is empty when the timer has made three stops: the run ends then, long before its instant.
            loop.schedule(every: .nanoseconds(1)) { timer in
                stops += 1
                loop.stop()
                if stops == 3 { timer.invalidate() }
            }
            loop.run(until: MonotonicInstant(nanoseconds: stall_monotonic_ns()) + .seconds(1_000))
            #expect(stops == 3)

            loop.add(LoopSource { _ in }, toMode: .default)
            loop.perform { loop.stop() }
            let instant = MonotonicInstant(nanoseconds: stall_monotonic_ns()) + .milliseconds(20)
            loop.run(until: instant)
            #expect(stall_monotonic_ns() >= instant.nanoseconds)
        }
    }

    @Test func `a descriptor that cannot be watched is refused with the kernel's reason`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            let closed = DescriptorSource(descriptor: 9_999) { _, _ in }
            #expect(throws: LoopError.system(call: "epoll_ctl", errno: EBADF)) {
                try loop.add(closed, toMode: .default)
            }
            #expect(loop.run(for: .zero) == .finished)
        }
    }

    @Test func `a source whose descriptor was closed first can still be removed`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            let descriptor = stall_eventfd_create()
            let source = DescriptorSource(descriptor: descriptor) { _, _ in }
            try loop.add(source, toMode: .default)
            close(descriptor)
            source.invalidate()
            #expect(!loop.contains(source, inMode: .default))
            #expect(loop.run(for: .zero) == .finished)
        }
    }

    @Test func `tracking serves common items, and leaves the default mode's alone`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var log: [String] = []
            loop.add(LoopTimer(after: .zero) { _ in log.append("default") }, toMode: .default)
            loop.add(LoopTimer(after: .zero) { _ in log.append("common") }, toMode: .common)
            loop.run(mode: .tracking, for: .zero)
            #expect(log == ["common"])
            loop.add(LoopTimer(after: .zero) { _ in log.append("late") }, toMode: .common)
            loop.run(mode: .tracking, for: .zero)
            #expect(log == ["common", "late"])
            loop.run(for: .zero)
            #expect(log == ["common", "late", "default"])
        }
    }

    @Test func `performAndWait returns after the block, and is refused on the loop's own thread`()
        throws
    {
        let ready = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var loop: EventRunLoop!
        let worker = Thread {
            loop = .current
            loop.add(LoopSource { _ in }, toMode: .default)
            ready.signal()
            loop.run()
        }
        worker.start()
        ready.wait()
        nonisolated(unsafe) var refusal: LoopError?
        nonisolated(unsafe) var hasRun = false
        try loop.performAndWait {
            hasRun = true
            do { try loop.performAndWait {} } catch { refusal = error as? LoopError }
        }
        #expect(hasRun)
        #expect(refusal == .wouldDeadlock)
        loop.stop()
    }

    /// The real CFRunLoop sleeps on over both blocks.
    @Test(arguments: [LoopActivity.beforeSources, .exit])
    func `a wake-up that a nested run takes, or drops at its end, reaches the outer run`(
        moment: LoopActivity
    ) {
        onFreshThread {
            let loop = EventRunLoop.current
            loop.add(LoopSource { _ in }, toMode: .default)
            loop.add(LoopSource { _ in }, toMode: "inner")
            let poster = LoopObserver(activities: moment, repeats: false) { _, _ in
                loop.perform { loop.stop() }
                loop.wakeUp()
            }
            loop.add(poster, toMode: "inner")
            loop.perform { loop.run(mode: "inner", for: .zero) }
            #expect(loop.run(mode: .default, for: .seconds(60)) == .stopped)
        }
    }

    @Test func `blocks of another mode keep their order across nested runs`() {
        onFreshThread {
            let loop = EventRunLoop.current
            loop.add(LoopSource { _ in }, toMode: .default)
            nonisolated(unsafe) var log: [Int] = []
            loop.perform {
                loop.perform(inMode: "other") { log.append(2) }
                loop.run(for: .zero)
            }
            loop.perform(inMode: "other") { log.append(1) }
            loop.run(for: .zero)
            loop.run(mode: "other", for: .zero)
            #expect(log == [1, 2])
        }
    }

    @Test func `performAndWait throws when the thread ends without running the block`() {
        let (ready, end, ended) = (
            DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
        )
        nonisolated(unsafe) var loop: EventRunLoop!
        nonisolated(unsafe) var failure: LoopError?
        Thread {
            loop = .current
            ready.signal()
            end.wait()
        }.start()
        ready.wait()
        Thread {
            do { try loop.performAndWait {} } catch { failure = error as? LoopError }
            ended.signal()
        }.start()
        while !loop.hasWaitingBlock { sched_yield() }
        end.signal()
        ended.wait()
        #expect(failure == .stopped)
    }

    @Test func `a descriptor that one common mode refuses is in none`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            loop.addCommonMode("other")
            let source = DescriptorSource(descriptor: 9_999) { _, _ in }
            #expect(throws: LoopError.self) { try loop.add(source, toMode: .common) }
            #expect(!loop.contains(source, inMode: .common))
            #expect(loop.run(for: .zero) == .finished)
        }
    }

    @Test func `an item that is removed from the common items leaves every common mode`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            let modes: [LoopMode] = [.default, "other", .common]
            loop.addCommonMode("other")
            let descriptor = stall_eventfd_create()
            defer { close(descriptor) }
            let timer = LoopTimer(after: .zero) { _ in Issue.record("it fires") }
            let source = LoopSource { _ in }
            let observer = LoopObserver { _, _ in Issue.record("it is called") }
            let watched = DescriptorSource(descriptor: descriptor) { _, _ in }
            loop.add(timer, toMode: .common)
            loop.add(source, toMode: .common)
            loop.add(observer, toMode: .common)
            try loop.add(watched, toMode: .common)
            loop.remove(timer, fromMode: .common)
            loop.remove(source, fromMode: .common)
            loop.remove(observer, fromMode: .common)
            loop.remove(watched, fromMode: .common)
            for mode in modes {
                #expect(!loop.contains(timer, inMode: mode))
                #expect(!loop.contains(source, inMode: mode))
                #expect(!loop.contains(observer, inMode: mode))
                #expect(!loop.contains(watched, inMode: mode))
            }
            #expect(loop.run(for: .zero) == .finished)
            #expect(loop.run(mode: "other", for: .zero) == .finished)
        }
    }

    @Test func `an item belongs to one loop; a second one refuses it`() {
        onFreshThread {
            let timer = LoopTimer(after: .seconds(60)) { _ in }
            let observer = LoopObserver { _, _ in }
            let loop = EventRunLoop.current
            #expect(loop.add(timer, toMode: .default))
            #expect(loop.add(observer, toMode: .common))
            onFreshThread {
                #expect(!EventRunLoop.current.add(timer, toMode: .default))
                #expect(!EventRunLoop.current.add(observer, toMode: .default))
            }
            loop.remove(timer, fromMode: .default)
            loop.remove(observer, fromMode: .common)
            onFreshThread {
                #expect(EventRunLoop.current.add(timer, toMode: .default))
                #expect(EventRunLoop.current.add(observer, toMode: .default))
            }
            timer.invalidate()
            #expect(!loop.add(timer, toMode: .default))
        }
    }

    @Test func `a block performed later runs once, in its mode, unless its timer is invalidated`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var log: [String] = []
            let cancelled = loop.perform(after: .zero) { log.append("cancelled") }
            loop.perform(after: .milliseconds(2)) { log.append("later") }
            loop.perform(after: .zero) { log.append("now") }
            loop.perform(after: .zero, inMode: "other") { log.append("other") }
            cancelled.invalidate()
            #expect(loop.run(mode: .default) == .finished)
            #expect(log == ["now", "later"])
            #expect(loop.run(mode: "other") == .finished)
            #expect(log == ["now", "later", "other"])
            #expect(!cancelled.isValid)
        }
    }

    /// A one-shot timer is let go of by the loop that called it, not by the one that its handler gave it to.
    @Test func `a one-shot timer that its handler moves to another loop is over after its call`() {
        let other = try? LoopThread(name: "other")
        onFreshThread {
            let loop = EventRunLoop.current
            let timer = LoopTimer(after: .zero) { timer in
                loop.remove(timer, fromMode: .default)
                #expect(other!.loop.add(timer, toMode: "never run"))
            }
            loop.add(timer, toMode: .default)
            loop.run(for: .zero)
            #expect(!timer.isValid)
            #expect(!other!.loop.contains(timer, inMode: "never run"))
        }
    }

    @Test func `the loop of an ended thread takes nothing and says so`() throws {
        nonisolated(unsafe) var loop: EventRunLoop!
        onFreshThread { loop = .current }
        #expect(!loop.post {})
        #expect(!loop.perform {})
        #expect(!loop.perform(inModes: [.default, "other"]) {})
        #expect(!loop.perform(after: .zero) {}.isValid)
        #expect(!loop.add(LoopTimer(after: .zero) { _ in }, toMode: .common))
        #expect(!loop.add(LoopSource { _ in }, toMode: .default))
        #expect(!loop.add(LoopObserver { _, _ in }, toMode: "other"))
        #expect(!(try loop.add(DescriptorSource(descriptor: 0) { _, _ in }, toMode: .default)))
        #expect(throws: LoopError.stopped) { try loop.performAndWait {} }
    }

    /// Items may hold their loop: it and its descriptors go when its thread ends.
    @Test(arguments: [LoopMode.default, .common, "other"])
    func `items whose handlers hold their loop do not keep it`(mode: LoopMode) {
        nonisolated(unsafe) weak var loop: EventRunLoop?
        onFreshThread {
            let own = EventRunLoop.current
            loop = own
            own.addCommonMode("other")
            own.add(LoopTimer(after: .seconds(60)) { _ in _ = own }, toMode: mode)
            own.add(LoopSource { _ in _ = own }, toMode: mode)
            own.add(LoopObserver { _, _ in _ = own }, toMode: mode)
            let pipe = stall_eventfd_create()
            _ = try? own.add(DescriptorSource(descriptor: pipe) { _, _ in _ = own }, toMode: mode)
            own.perform(inMode: "never run") { _ = own }
            own.performWhenIdle(inMode: "never run") { _ = own }
            own.run(for: .zero)
            close(pipe)
        }
        #expect(loop == nil)
    }

    @Test func `running another thread's loop stops the process with a sentence`() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent])
        {
            onFreshThread { EventRunLoop.main.run() }
        }
        let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(message.contains("a run loop can be run only by its own thread"))
    }
}

/// As `onFreshThread`, handing on what the body throws.
func onFreshThreadThrowing(_ body: @escaping @Sendable () throws -> Void) throws {
    nonisolated(unsafe) var failure: (any Error)?
    onFreshThread {
        do { try body() } catch { failure = error }
    }
    if let failure { throw failure }
}
