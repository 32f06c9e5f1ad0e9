import CLinux
import Foundation
import LoopConformance
import StallModel
import TestSupport
import Testing

@testable import StallRunLoop

/// Goal: sources of one descriptor share it without harm to each other, to the app's `close`, or to a later file under the
/// same number; files are always ready; the events of a source can change.
@Suite struct SharedDescriptorTests {
    @Test(arguments: [EventRunLoop.DescriptorDelivery.strict, .batch])
    func `sources of one descriptor take turns, and each is told what it waits for`(
        delivery: EventRunLoop.DescriptorDelivery
    ) throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            loop.descriptorDelivery = delivery
            let (one, other) = Self.socketPair()
            defer { [one, other].forEach { close($0) } }
            write(other, "x", 1)
            nonisolated(unsafe) var told: [[DescriptorEvents]] = [[], [], [], []]
            let wanted: [DescriptorEvents] = [.readable, .writable, [.readable, .writable], []]
            for (index, events) in wanted.enumerated() {
                let source = DescriptorSource(descriptor: one, events: events) { _, events in
                    told[index].append(events)
                }
                try loop.add(source, toMode: .default)
            }
            // Another descriptor between them does not disturb the turns.
            nonisolated(unsafe) var others = 0
            try loop.add(
                DescriptorSource(descriptor: other, events: .writable) { _, _ in others += 1 },
                toMode: .default)
            for _ in 0..<12 { loop.run(for: .zero) }
            for index in 0..<3 {
                #expect(told[index].count >= 2)
                #expect(told[index].allSatisfy { $0 == wanted[index] })
            }
            #expect(told[3].isEmpty)
            #expect(others >= 6)
        }
    }

    /// Method: every end that a peer can make, with one to three paused sources, and one that waits for room; by each way to ask.
    @Test(arguments: ["strict", "batch", "without a set"], StreamEnd.allCases)
    func `each paused source is told once of the other side's end`(
        way: String, end: StreamEnd
    ) throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            loop.descriptorDelivery = way == "batch" ? .batch : .strict
            loop.schedule(every: .milliseconds(1)) { _ in }
            loop.run(for: .milliseconds(2))
            for count in 1...3 {
                for hasWriter in [false, true] {
                    let (own, peer) = end.makePair()
                    defer {
                        close(own)
                        if end == .unixShutdown { close(peer) }
                    }
                    nonisolated(unsafe) var log = [[DescriptorEvents]](repeating: [], count: count)
                    nonisolated(unsafe) var writerCalls = 0
                    let sources = (0..<count).map { index in
                        DescriptorSource(descriptor: own, events: []) { log[index].append($1) }
                    }
                    let writer = DescriptorSource(descriptor: own, events: .writable) { _, _ in
                        writerCalls += 1
                    }
                    if hasWriter { try loop.add(writer, toMode: .default) }
                    for source in sources { try loop.add(source, toMode: .default) }
                    if way == "without a set" {
                        loop.lastRenewal = stall_monotonic_ns()
                        loop.defaultItems.poller!.isBroken = true
                    }
                    for _ in 0..<3 { loop.run(for: .zero) }
                    #expect(log.allSatisfy { $0 == [] })
                    end.make(peer, of: own)
                    for _ in 0..<30 { loop.run(for: .zero) }
                    #expect(log.allSatisfy { $0 == [.hangUp] })
                    #expect(hasWriter == (writerCalls > 5))
                    // Resumed and paused again, it is told again.
                    log[0] = []
                    sources[0].events = .writable
                    sources[0].events = []
                    for _ in 0..<30 { loop.run(for: .zero) }
                    #expect(log.allSatisfy { $0 == [.hangUp] })
                    for source in sources + [writer] { source.invalidate() }
                }
            }
        }
    }

    @Test func `the app's close closes a descriptor that has two sources`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            let (one, other) = Self.socketPair()
            for _ in 0..<2 {
                try loop.add(DescriptorSource(descriptor: one) { _, _ in }, toMode: .default)
            }
            closePeer(one, of: other)
            var byte: UInt8 = 0
            #expect(recv(other, &byte, 1, CInt(MSG_DONTWAIT)) == 0)
            close(other)
        }
    }

    @Test func `an old source leaves a new file under its number alone`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            let number = stall_eventfd_create()
            let old = [0, 1].map { _ in DescriptorSource(descriptor: number) { _, _ in } }
            for source in old { try loop.add(source, toMode: .default) }
            // The number is used anew at once, whatever other threads open meanwhile.
            let file = eventfd(1, CInt(O_CLOEXEC))
            dup2(file, number)
            nonisolated(unsafe) var calls = 0
            let new = DescriptorSource(descriptor: number) { _, _ in calls += 1 }
            try loop.add(new, toMode: .default)
            loop.run(for: .zero)
            #expect(calls == 1)
            for source in old { source.invalidate() }
            loop.run(for: .zero)
            #expect(calls == 2)
            new.invalidate()
            [file, number].forEach { close($0) }
        }
    }

    /// The file lives on in a duplicate, so the kernel goes on to report it, for a source that is gone.
    @Test func `a file that was closed before its source was removed does not keep the loop awake`()
        throws
    {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            loop.add(LoopSource { _ in }, toMode: .default)
            let number = stall_eventfd_create()
            stall_eventfd_write(number)
            let source = DescriptorSource(descriptor: number) { _, _ in }
            try loop.add(source, toMode: .default)
            let duplicate = dup(number)
            close(number)
            source.invalidate()
            nonisolated(unsafe) var wakeUps = 0
            loop.add(
                LoopObserver(activities: .afterWaiting) { _, _ in wakeUps += 1 }, toMode: .default)
            loop.run(for: .milliseconds(30))
            let epoll = loop.defaultItems.epoll(of: loop)
            var ready = stall_ready()
            #expect(stall_poller_poll(epoll, &ready, 1) == 0)
            #expect(wakeUps < 10)
            close(duplicate)
        }
    }

    @Test(arguments: ["/dev/null", "/proc/self/exe"])
    func `a file is always ready, and takes its turn`(path: String) throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            let file = open(path, O_RDONLY)
            let ready = stall_eventfd_create()
            stall_eventfd_write(ready)
            defer { [file, ready].forEach { close($0) } }
            nonisolated(unsafe) var told: [DescriptorEvents] = []
            nonisolated(unsafe) var (ticks, others) = (0, 0)
            let source = DescriptorSource(descriptor: file) { _, events in told.append(events) }
            try loop.add(source, toMode: .default)
            try loop.add(
                DescriptorSource(descriptor: ready) { _, _ in others += 1 }, toMode: .default)
            let timer = loop.schedule(every: .nanoseconds(1)) { _ in ticks += 1 }
            for _ in 0..<12 { loop.run(for: .zero) }
            #expect(told.count >= 2 && told.allSatisfy { $0 == .readable })
            #expect(ticks >= 4 && others >= 2)
            timer.invalidate()
            // A source that waits for nothing waits.
            source.events = []
            told = []
            for _ in 0..<4 { loop.run(for: .zero) }
            #expect(told.isEmpty)
            source.events = .writable
            for _ in 0..<4 { loop.run(for: .zero) }
            #expect(!told.isEmpty && told.allSatisfy { $0 == .writable })
        }
    }

    @Test func `the events of a source can change, also while its loop sleeps`() throws {
        let thread = try LoopThread()
        defer { thread.stop() }
        let (one, other) = Self.socketPair()
        defer { [one, other].forEach { close($0) } }
        let called = DispatchSemaphore(value: 0)
        let source = DescriptorSource(descriptor: one) { source, events in
            guard events == .writable else { return }
            source.events = .readable
            called.signal()
        }
        try thread.loop.add(source, toMode: .common)
        for _ in 0..<3 {
            while !thread.loop.isWaiting { sched_yield() }
            source.events = .writable
            #expect(called.wait(timeout: .now() + 20) == .success)
        }
        source.invalidate()
    }

    /// Method: a source is invalidated by its handler, in a nested run, by another thread while the handler runs, between
    /// calls, and by letting go of it.
    @Test func `a cancel handler is called once, when no handler runs`() throws {
        for way in 0..<5 {
            try onFreshThreadThrowing {
                let loop = EventRunLoop.current
                let number = stall_eventfd_create()
                stall_eventfd_write(number)
                nonisolated(unsafe) var log: [String] = []
                var source: DescriptorSource? = DescriptorSource(
                    descriptor: number,
                    onCancel: {
                        log.append("cancel")
                        close($0)
                    }
                ) { source, _ in
                    log.append("call")
                    switch way {
                    case 0: source.invalidate()
                    case 1 where log.count == 1:
                        loop.run(for: .zero)
                        #expect(!log.contains("cancel"))
                    case 1: source.invalidate()
                    case 2: onFreshThread { source.invalidate() }
                    default: break
                    }
                    log.append("return")
                }
                try loop.add(source!, toMode: .default)
                loop.run(for: .zero)
                if way == 3 { source?.invalidate() }
                if way == 4 { loop.remove(source!, fromMode: .default) }
                source?.events = []
                source = nil
                #expect(log.last == "cancel")
                #expect(log.count { $0 == "cancel" } == 1)
            }
        }
    }

    @Test func `each of several sources gets a signal, also on other loops`() throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var counts = [0, 0]
            let sources = try [0, 1].map { index in
                let source = try SignalSource([SIGUSR1]) { signal, sender in
                    #expect(signal == SIGUSR1 && sender == getpid())
                    counts[index] += 1
                }
                try loop.add(source, toMode: .default)
                return source
            }
            let there = DispatchSemaphore(value: 0)
            let thread = try LoopThread()
            let other = try SignalSource([SIGUSR1, SIGUSR2]) { _, _ in there.signal() }
            try thread.loop.add(other, toMode: .default)
            for round in 1...5 {
                pthread_kill(pthread_self(), SIGUSR1)
                for _ in 0..<3 { loop.run(for: .zero) }
                #expect(counts == [round, round])
                #expect(there.wait(timeout: .now() + 20) == .success)
            }
            for source in sources + [other] { source.invalidate() }
            thread.stop()
        }
    }

    private static func socketPair() -> (CInt, CInt) {
        var numbers: [CInt] = [0, 0]
        socketpair(AF_UNIX, StreamEnd.stream, 0, &numbers)
        return (numbers[0], numbers[1])
    }
}

/// How the other side ends its stream.
enum StreamEnd: CaseIterable {
    case unixClose, unixShutdown, tcpClose

    /// Not for the processes that other tests start: their ends would keep the connection.
    static let stream = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)

    /// Two sockets that are connected.
    func makePair() -> (CInt, CInt) {
        var ends: [CInt] = [-1, -1]
        guard self == .tcpClose else {
            socketpair(AF_UNIX, Self.stream, 0, &ends)
            return (ends[0], ends[1])
        }
        let listener = socket(AF_INET, Self.stream, 0)
        defer { close(listener) }
        ends[1] = socket(AF_INET, Self.stream, 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size)
                listen(listener, 1)
                getsockname(listener, $0, &size)
                connect(ends[1], $0, size)
            }
        }
        ends[0] = accept(listener, nil, nil)
        _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
        return (ends[0], ends[1])
    }

    func make(_ peer: CInt, of own: CInt) {
        switch self {
        case .unixShutdown: shutdown(peer, CInt(SHUT_WR))
        case .unixClose, .tcpClose: closePeer(peer, of: own)
        }
    }
}
