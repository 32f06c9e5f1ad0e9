import CLinux
import LoopConformance
import StallModel
import Synchronization
import Testing

@testable import StallRunLoop

/// Goal: what an app hands to a loop is let go of when it is over, and never under the loop's lock.
@Suite struct LettingGoTests {
    /// One way to hand something over: adds it, with a probe in its closure, and returns what takes it back.
    struct Way: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let add: @Sendable (EventRunLoop, Probe, Owner) -> Void
    }

    /// What an app's object has: the item, whose handler has the object.
    final class Owner: @unchecked Sendable {
        var end: () -> Void = {}
        var item: Any?
        var isCalled = false
        let probe: Probe
        init(_ probe: Probe) { self.probe = probe }
        /// In the handler: the object ends its own item.
        func called() {
            isCalled = true
            end()
        }
    }

    static let items: [Way] = [
        Way(testDescription: "timer that repeats") { loop, _, owner in
            let timer = LoopTimer(after: .zero, every: .seconds(100)) { _ in owner.called() }
            owner.item = timer
            owner.end = { [unowned owner] in (owner.item as! LoopTimer).invalidate() }
            loop.add(timer, toMode: .default)
        },
        Way(testDescription: "timer in all common modes") { loop, _, owner in
            let timer = LoopTimer(after: .zero, every: .seconds(100)) { _ in owner.called() }
            owner.item = timer
            owner.end = { [unowned owner] in (owner.item as! LoopTimer).invalidate() }
            loop.add(timer, toMode: .common)
        },
        Way(testDescription: "timer that is called once") { loop, _, owner in
            let timer = LoopTimer(after: .zero) { _ in owner.called() }
            owner.item = timer
            loop.add(timer, toMode: .default)
        },
        Way(testDescription: "source") { loop, _, owner in
            let source = LoopSource(onCancel: { _, _ in _ = owner }) { _ in owner.called() }
            owner.item = source
            owner.end = { [unowned owner] in (owner.item as! LoopSource).invalidate() }
            loop.add(source, toMode: .default)
            source.signal()
        },
        Way(testDescription: "observer") { loop, _, owner in
            let observer = LoopObserver(activities: .beforeTimers) { _, _ in owner.called() }
            owner.item = observer
            owner.end = { [unowned owner] in (owner.item as! LoopObserver).invalidate() }
            loop.add(observer, toMode: .default)
        },
        Way(testDescription: "observer that is called once") { loop, _, owner in
            let observer = LoopObserver(activities: .beforeTimers, repeats: false) { _, _ in
                owner.called()
            }
            owner.item = observer
            loop.add(observer, toMode: .default)
        },
        Way(testDescription: "descriptor") { loop, _, owner in
            let descriptor = OpenedDescriptor { _ in stall_eventfd_create() }!
            stall_eventfd_write(descriptor.number)
            let source = DescriptorSource(descriptor: descriptor.number) { _, _ in
                withExtendedLifetime(descriptor) { owner.called() }
            }
            owner.item = source
            owner.end = { [unowned owner] in (owner.item as! DescriptorSource).invalidate() }
            _ = try? loop.add(source, toMode: .default)
        },
        Way(testDescription: "channel") { loop, _, owner in
            let channel = LoopChannel<Int>(to: loop, capacity: 3) { _ in owner.called() }
            owner.item = channel
            owner.end = { [unowned owner] in (owner.item as! LoopChannel<Int>).close() }
            channel.send(1)
        },
        Way(testDescription: "registration") { loop, _, owner in
            let timer = LoopTimer(after: .zero, every: .seconds(100)) { _ in owner.called() }
            owner.item = LoopRegistration(timer)
            owner.end = { [unowned owner] in (owner.item as! LoopRegistration).cancel() }
            loop.add(timer, toMode: .default)
        },
    ]

    static let once: [Way] = [
        Way(testDescription: "block") { loop, probe, _ in
            loop.perform { _ = probe }
        },
        Way(testDescription: "block for several modes") { loop, probe, _ in
            loop.perform(inModes: [.default, "other"]) { _ = probe }
        },
        Way(testDescription: "post") { loop, probe, _ in loop.post { _ = probe } },
        Way(testDescription: "delayed block") { loop, probe, _ in
            loop.perform(after: .zero) { _ = probe }
        },
        Way(testDescription: "idle unit") { loop, probe, _ in
            loop.performWhenIdle { _ = probe }
        },
        Way(testDescription: "posted work") { loop, _, owner in
            let work = LoopWork { _ = owner }
            owner.item = work
            loop.post(work)
        },
        Way(testDescription: "idle work") { loop, _, owner in
            let work = LoopWork { _ = owner }
            owner.item = work
            loop.performWhenIdle(work)
        },
    ]

    @Test(arguments: [false, true])
    func `an item that its own handler ends lets go of its owner`(withoutDescriptors: Bool) {
        for way in Self.items {
            let census = Probe.Census()
            onFreshThread {
                let loop = EventRunLoop.current
                if withoutDescriptors { Self.breakPoller(of: loop) }
                let keep = LoopSource { _ in }
                loop.add(keep, toMode: .default)
                weak var owner: Owner?
                do {
                    let made = Owner(Probe(loop, census))
                    owner = made
                    way.add(loop, made.probe, made)
                }
                #expect(owner != nil, "\(way.testDescription)")
                for _ in 0..<3 { loop.run(for: .milliseconds(5)) }
                #expect(census.alive == 0, "\(way.testDescription), before the thread's end")
                owner?.end()
                keep.invalidate()
            }
            #expect(census.alive == 0, "\(way.testDescription)")
            #expect(census.underLock == 0, "\(way.testDescription)")
        }
    }

    @Test func `an item that is ended before it was called lets go of its owner`() {
        for way in Self.items where way.testDescription.hasSuffix("once") == false {
            let census = Probe.Census()
            onFreshThread {
                let loop = EventRunLoop.current
                do {
                    let owner = Owner(Probe(loop, census))
                    way.add(loop, owner.probe, owner)
                    owner.end()
                }
                #expect(census.alive == 0, "\(way.testDescription)")
            }
            #expect(census.underLock == 0, "\(way.testDescription)")
        }
    }

    @Test func `an item that another thread ends lets go of its owner`() {
        for way in Self.items where way.testDescription.hasSuffix("once") == false {
            let census = Probe.Census()
            onFreshThread {
                let loop = EventRunLoop.current
                do {
                    let owner = Owner(Probe(loop, census))
                    way.add(loop, owner.probe, owner)
                    onFreshThread { owner.end() }
                }
                #expect(census.alive == 0, "\(way.testDescription)")
            }
            #expect(census.underLock == 0, "\(way.testDescription)")
        }
    }

    @Test func `work that has run is let go of at once`() {
        for way in Self.once {
            let census = Probe.Census()
            onFreshThread {
                let loop = EventRunLoop.current
                let keep = LoopSource { _ in }
                loop.add(keep, toMode: .default)
                do {
                    let probe = Probe(loop, census)
                    way.add(loop, probe, Owner(probe))
                }
                #expect(census.alive == 1, "\(way.testDescription)")
                loop.run(for: .milliseconds(5))
                #expect(census.alive == 0, "\(way.testDescription), after its call")
                keep.invalidate()
            }
            #expect(census.underLock == 0, "\(way.testDescription)")
        }
    }

    @Test func `work for a loop whose thread has ended is dropped`() {
        for way in Self.once + Self.items {
            let census = Probe.Census()
            nonisolated(unsafe) var loop: EventRunLoop!
            onFreshThread { loop = .current }
            do {
                let owner = Owner(Probe(loop, census))
                way.add(loop, owner.probe, owner)
                owner.end()
                owner.item = nil
            }
            #expect(census.alive == 0, "\(way.testDescription)")
            #expect(census.underLock == 0, "\(way.testDescription)")
        }
    }

    @Test func `work that waits when the thread ends is dropped, and channels are closed`() {
        for way in Self.once + Self.items.filter({ $0.testDescription == "channel" }) {
            let census = Probe.Census()
            onFreshThread {
                let loop = EventRunLoop.current
                let probe = Probe(loop, census)
                way.add(loop, probe, Owner(probe))
            }
            #expect(census.alive == 0, "\(way.testDescription)")
            #expect(census.underLock == 0, "\(way.testDescription)")
        }
    }

    /// What an observer captured, and the observer itself, while a later one of the same moment is called.
    @Test func `an observer that is over has let go of all when the next one is called`() {
        for end in ["invalidated", "called once", "invalidated by the one before", "removed"] {
            onFreshThread {
                let loop = EventRunLoop.current
                let census = Probe.Census()
                loop.add(LoopSource { _ in }, toMode: .default)
                nonisolated(unsafe) weak var ended: LoopObserver?
                nonisolated(unsafe) var alive: Int?
                do {
                    let probe = Probe(loop, census)
                    let observer = LoopObserver(
                        activities: .beforeTimers, repeats: end != "called once"
                    ) { observer, _ in
                        withExtendedLifetime(probe) {}
                        if end == "invalidated" { observer.invalidate() }
                        if end == "removed" { loop.remove(observer, fromMode: .default) }
                    }
                    ended = observer
                    loop.add(
                        LoopObserver(activities: .beforeTimers, order: -1) { _, _ in
                            if end == "invalidated by the one before" { ended?.invalidate() }
                        }, toMode: .default)
                    loop.add(observer, toMode: .default)
                }
                loop.add(
                    LoopObserver(activities: .beforeTimers, order: 1) { _, _ in
                        alive = census.alive
                    }, toMode: .default)
                loop.run(for: .zero)
                #expect(alive == 0, "\(end)")
                #expect(ended == nil && census.underLock == 0, "\(end)")
            }
        }
    }

    @Test func `a descriptor that an observer removes after the wait is not served`() throws {
        for isElsewhere in [false, true] {
            nonisolated(unsafe) var calls = 0
            onFreshThread {
                let loop = EventRunLoop.current
                let descriptor = stall_eventfd_create()
                stall_eventfd_write(descriptor)
                let source = DescriptorSource(descriptor: descriptor) { _, _ in calls += 1 }
                _ = try? loop.add(source, toMode: .default)
                loop.add(
                    LoopObserver(activities: .afterWaiting) { _, _ in
                        if isElsewhere {
                            onFreshThread { loop.remove(source, fromMode: .default) }
                        } else {
                            loop.remove(source, fromMode: .default)
                        }
                    }, toMode: .default)
                loop.run(for: .milliseconds(10))
                stall_descriptor_close(descriptor)
            }
            #expect(calls == 0)
        }
    }

    @Test func `a channel keeps its order in a nested run, and its capacity`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var log: [Int] = []
            nonisolated(unsafe) var channel: LoopChannel<Int>!
            channel = LoopChannel(to: loop, capacity: 2) { number in
                log.append(number)
                guard number == 1 else { return }
                #expect(channel.send(3))
                #expect(!channel.send(4))
                loop.run(for: .zero)
            }
            channel.send(1)
            channel.send(2)
            loop.run(for: .zero)
            #expect(log == [1, 2, 3])
            channel.close()
        }
    }

    @Test func `a channel hands nothing over after its close`() {
        onFreshThread {
            let loop = EventRunLoop.current
            let census = Probe.Census()
            nonisolated(unsafe) var log = 0
            nonisolated(unsafe) var channel: LoopChannel<Probe>!
            channel = LoopChannel(to: loop, capacity: 9) { _ in
                log += 1
                channel.close()
            }
            for _ in 0..<3 { channel.send(Probe(loop, census)) }
            loop.run(for: .zero)
            #expect(log == 1)
            #expect(census.alive == 0)
            #expect(census.underLock == 0)
        }
    }

    /// As if the process had had no descriptor for the mode's epoll set.
    private static func breakPoller(of loop: EventRunLoop) {
        loop.lock.lock()
        _ = loop.defaultItems.epoll(of: loop)
        loop.defaultItems.poller?.isBroken = true
        loop.lastRenewal = stall_monotonic_ns()
        loop.lock.unlock()
    }
}
