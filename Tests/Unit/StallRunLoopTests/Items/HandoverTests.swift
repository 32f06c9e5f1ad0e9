import CLinux
import Foundation
import LoopConformance
import StallModel
import Testing

@testable import StallRunLoop

/// Goal: every way to give work to a loop keeps one promise: it is refused when the loop is dead, else done once, in order under
/// nesting; it can be taken back, and what it holds is let go of then, or when it is done, never under the loop's lock.
/// Method: a table of all ways, each played in all respects; the work holds a probe, whose `deinit` uses the loop.
@Suite struct HandoverTests {
    typealias Body = @Sendable () -> Void

    /// A way to hand over work.
    struct Way: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// Hands it over, by whether it was taken. What it needs to stay is kept by the loop, or by the result.
        let handOver:
            @Sendable (EventRunLoop, @escaping Body) -> (isTaken: Bool, kept: (any Sendable)?)
        /// Hands it over and takes it back. What took it back stays with the result.
        let takeBack: @Sendable (EventRunLoop, @escaping Body) -> (any Sendable)?
        /// Whether three of them come in the order in which they were handed over.
        var isOrdered = true
        /// An item that may be added to another loop: as long as the app holds it, it keeps its handler, as in
        /// CFRunLoop.
        var (staysAtEnd, staysWhenRefused) = (false, false)

        init(
            _ name: String, isOrdered: Bool = true,
            _ handOver: @escaping @Sendable (EventRunLoop, @escaping Body) -> Bool,
            takeBack: @escaping @Sendable (EventRunLoop, @escaping Body) -> (any Sendable)?
        ) {
            testDescription = name
            self.handOver = { (handOver($0, $1), nil) }
            self.takeBack = takeBack
            self.isOrdered = isOrdered
        }

        /// An item: it is added, made to call its handler, and invalidated.
        init<Item: Sendable>(
            item name: String, isOrdered: Bool = true, staysAtEnd: Bool = true,
            staysWhenRefused: Bool = true,
            _ make: @escaping @Sendable (EventRunLoop, @escaping Body) -> (Item, isAdded: Bool),
            end: @escaping @Sendable (Item) -> Void
        ) {
            testDescription = name
            handOver = { loop, body in
                let (item, isAdded) = make(loop, body)
                return (isAdded, item)
            }
            takeBack = { loop, body in
                let (item, _) = make(loop, body)
                end(item)
                return item
            }
            self.isOrdered = isOrdered
            (self.staysAtEnd, self.staysWhenRefused) = (staysAtEnd, staysWhenRefused)
        }

        /// Work that can be cancelled.
        init(
            work name: String, isOrdered: Bool = true,
            _ handOver: @escaping @Sendable (EventRunLoop, LoopWork) -> Bool
        ) {
            self.init(
                item: name, isOrdered: isOrdered, staysAtEnd: false, staysWhenRefused: false
            ) { loop, body in
                let work = LoopWork(body)
                let isTaken = handOver(loop, work)
                #expect(work.isWaiting == isTaken)
                return (work, isTaken)
            } end: { work in
                #expect(work.cancel() && !work.cancel() && !work.isWaiting)
            }
        }
    }

    /// Blocks are taken back as the work that runs them.
    private static func cancel(_ loop: EventRunLoop, _ body: @escaping Body) -> (any Sendable)? {
        let work = LoopWork(body)
        loop.perform(inModes: ["other", .default]) { work.run() }
        loop.post { work.run() }
        work.cancel()
        return work
    }

    static let ways: [Way] = [
        Way("perform", { $0.perform($1) }, takeBack: cancel),
        Way("perform in modes", { $0.perform(inModes: ["m", .default], $1) }, takeBack: cancel),
        Way("post", { $0.post($1) }, takeBack: cancel),
        Way("idle unit", isOrdered: false, { $0.performWhenIdle($1) }, takeBack: cancel),
        Way(work: "performed work") { $0.perform($1) },
        Way(work: "posted work") { $0.post($1) },
        Way(work: "idle work", isOrdered: false) { $0.performWhenIdle($1) },
        Way(item: "delayed block", staysWhenRefused: false) { loop, body in
            let timer = loop.perform(after: .zero, body)
            return (timer, timer.isValid)
        } end: {
            $0.invalidate()
        },
        Way(item: "scheduled timer", staysWhenRefused: false) { loop, body in
            let timer = loop.schedule(every: .nanoseconds(1)) { timer in
                timer.invalidate()
                body()
            }
            return (timer, timer.isValid)
        } end: {
            $0.invalidate()
        },
        Way(item: "timer") { loop, body in
            let timer = LoopTimer(after: .zero) { _ in body() }
            return (timer, loop.add(timer, toMode: .default))
        } end: {
            $0.invalidate()
        },
        Way(item: "timer of all common modes") { loop, body in
            let timer = LoopTimer(after: .zero) { _ in body() }
            return (timer, loop.add(timer, toMode: .common))
        } end: {
            $0.invalidate()
        },
        Way(item: "registered timer") { loop, body in
            let timer = LoopTimer(after: .zero) { _ in body() }
            let isAdded = loop.add(timer, toMode: .default)
            return (LoopRegistration(timer), isAdded)
        } end: {
            $0.cancel()
        },
        Way(item: "source") { loop, body in
            let source = LoopSource { source in
                source.invalidate()
                body()
            }
            let isAdded = loop.add(source, toMode: .default)
            source.signal()
            return (source, isAdded)
        } end: {
            $0.invalidate()
        },
        Way(item: "observer") { loop, body in
            let observer = LoopObserver(activities: .beforeTimers, repeats: false) { _, _ in body()
            }
            return (observer, loop.add(observer, toMode: .default))
        } end: {
            $0.invalidate()
        },
        Way(item: "descriptor", isOrdered: false, staysWhenRefused: false) { loop, body in
            let number = stall_eventfd_create()
            stall_eventfd_write(number)
            let source = DescriptorSource(
                descriptor: number, onCancel: { stall_descriptor_close($0) }
            ) { source, _ in
                source.invalidate()
                body()
            }
            let isAdded = (try? loop.add(source, toMode: .default)) == true
            if !isAdded { source.invalidate() }
            return (source, isAdded)
        } end: {
            $0.invalidate()
        },
        Way(item: "watched file", isOrdered: false) { loop, body in
            let folder = FileManager.default.temporaryDirectory.appending(
                path: "handover-\(UUID().uuidString)")
            try! FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: false)
            let source = try! FileSource(path: folder.path) { [unowned loop] events, _ in
                if events.contains(.gone) { body() }
                withExtendedLifetime(loop) {}
            }
            let isAdded = (try? loop.add(source, toMode: .default)) == true
            try! FileManager.default.removeItem(at: folder)
            return (source, isAdded)
        } end: {
            $0.invalidate()
        },
        Way(item: "child process", isOrdered: false) { loop, body in
            var pid: pid_t = 0
            var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("true"), nil]
            defer { free(arguments[0]) }
            #expect(posix_spawn(&pid, "/bin/true", nil, nil, &arguments, environ) == 0)
            let source = try! ChildProcessSource(pid: pid) { _ in body() }
            let isAdded = (try? loop.add(source, toMode: .default)) == true
            return (source, isAdded)
        } end: { source in
            source.invalidate()
            var status: CInt = 0
            waitpid(source.pid, &status, 0)
        },
        Way(item: "message", staysAtEnd: false, staysWhenRefused: false) { loop, body in
            let channel = LoopChannel<Body>(to: loop, inMode: .default, capacity: 1) { $0() }
            return (channel, channel.send(body))
        } end: {
            $0.close()
        },
        Way(
            item: "message of another process", isOrdered: false, staysAtEnd: false,
            staysWhenRefused: false
        ) { loop, body in
            let sockets = try! MessageSockets()
            let message: [UInt8] = [0, 0, 0, 1, 7]
            #expect(write(sockets.peer, message, 5) == 5)
            let port = try? LoopMessagePort(
                descriptor: sockets.own, on: loop, inMode: .default, coding: .bytes
            ) { port, _ in
                port.close()
                body()
            }
            close(sockets.peer)
            return (port, port != nil)
        } end: {
            $0?.close()
        },
    ]

    /// A loop that stays: with nothing but observers in its mode it would not run.
    private static func newLoop() -> EventRunLoop {
        let loop = EventRunLoop.current
        loop.add(LoopSource { _ in }, toMode: .default)
        return loop
    }

    /// Runs until the work has been done, or for a minute.
    private static func run(_ loop: EventRunLoop, until isDone: () -> Bool) {
        let end = ContinuousClock.now + .seconds(60)
        while !isDone() && ContinuousClock.now < end { loop.run(for: .milliseconds(1)) }
    }

    /// Reaps the child whose loop does not: the testing library waits for any child of the process, and would find this one
    /// for ever instead of its own.
    private static func reap(_ item: (any Sendable)?) {
        guard let source = item as? ChildProcessSource else { return }
        var status: CInt = 0
        waitpid(source.pid, &status, 0)
    }

    @Test(arguments: ways)
    func `it is done once, and let go of then`(way: Way) {
        let census = Probe.Census()
        onFreshThread {
            let loop = Self.newLoop()
            nonisolated(unsafe) var calls = 0
            var kept: (any Sendable)?
            do {
                let probe = Probe(loop, census)
                let result = way.handOver(loop) { withExtendedLifetime(probe) { calls += 1 } }
                #expect(result.isTaken)
                kept = result.kept
            }
            #expect(census.alive == 1)
            Self.run(loop) { calls > 0 }
            #expect(census.alive == 0, "though the item is kept")
            loop.run(for: .milliseconds(1))
            #expect(calls == 1)
            withExtendedLifetime(kept) {}
        }
        #expect(census.underLock == 0)
    }

    @Test(arguments: ways)
    func `it can be taken back, and is let go of then`(way: Way) {
        let census = Probe.Census()
        onFreshThread {
            let loop = Self.newLoop()
            nonisolated(unsafe) var calls = 0
            var kept: (any Sendable)?
            do {
                let probe = Probe(loop, census)
                kept = way.takeBack(loop) { withExtendedLifetime(probe) { calls += 1 } }
            }
            #expect(census.alive == 0, "though the item is kept")
            for _ in 0..<3 { loop.run(for: .zero) }
            #expect(calls == 0)
            withExtendedLifetime(kept) {}
        }
        #expect(census.underLock == 0)
    }

    @Test(arguments: ways)
    func `it is let go of when the thread ends before it is done`(way: Way) {
        let census = Probe.Census()
        nonisolated(unsafe) var calls = 0
        nonisolated(unsafe) var kept: (any Sendable)?
        onFreshThread {
            let loop = Self.newLoop()
            let probe = Probe(loop, census)
            let result = way.handOver(loop) { withExtendedLifetime(probe) { calls += 1 } }
            #expect(result.isTaken)
            kept = result.kept
            Self.reap(kept)
        }
        #expect(census.alive == (way.staysAtEnd ? 1 : 0), "though the item is kept")
        if let work = kept as? LoopWork { #expect(!work.isWaiting && !work.cancel()) }
        kept = nil
        #expect(census.alive == 0)
        #expect(calls == 0)
        #expect(census.underLock == 0)
    }

    @Test(arguments: ways)
    func `it is refused by a loop whose thread has ended, and let go of`(way: Way) {
        let census = Probe.Census()
        nonisolated(unsafe) var calls = 0
        nonisolated(unsafe) var dead: EventRunLoop!
        onFreshThread { dead = .current }
        var kept: (any Sendable)?
        do {
            let probe = Probe(dead, census)
            let result = way.handOver(dead) { withExtendedLifetime(probe) { calls += 1 } }
            #expect(!result.isTaken)
            kept = result.kept
            Self.reap(kept)
        }
        #expect(census.alive == (way.staysWhenRefused ? 1 : 0), "though the item is kept")
        kept = nil
        #expect(census.alive == 0)
        #expect(calls == 0)
        #expect(census.underLock == 0)
    }

    @Test func `work that two loops have is dropped when both have ended, not before`() throws {
        let census = Probe.Census()
        nonisolated(unsafe) var calls = 0
        onFreshThread {
            let loop = Self.newLoop()
            let work = LoopWork { [probe = Probe(loop, census)] in
                withExtendedLifetime(probe) { calls += 1 }
            }
            #expect(loop.post(work))
            onFreshThread { #expect(EventRunLoop.current.performWhenIdle(work)) }
            #expect(work.isWaiting && census.alive == 1)
            loop.run(for: .zero)
            #expect(!work.isWaiting && calls == 1 && census.alive == 0)
            let other = LoopWork { [probe = Probe(loop, census)] in _ = probe }
            onFreshThread { #expect(EventRunLoop.current.post(other)) }
            #expect(!other.isWaiting && census.alive == 0)
        }
    }

    /// A run that is nested in the second of three continues with the third.
    @Test(arguments: ways)
    func `three are done once each, in order where they have one, also by nested runs`(way: Way) {
        onFreshThread {
            let loop = Self.newLoop()
            nonisolated(unsafe) var log: [Int] = []
            var kept: [(any Sendable)?] = []
            for number in 1...3 {
                let result = way.handOver(loop) {
                    log.append(number)
                    if number == 2 { loop.run(for: .zero) }
                }
                kept.append(result.kept)
            }
            Self.run(loop) { log.count >= 3 }
            loop.run(for: .milliseconds(1))
            #expect((way.isOrdered ? log : log.sorted()) == [1, 2, 3])
            withExtendedLifetime(kept) {}
        }
    }
}
