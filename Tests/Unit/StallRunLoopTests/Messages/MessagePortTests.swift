import Foundation
import Glibc
import LoopConformance
import StallModel
import Synchronization
import TestSupport
import Testing

@testable import StallRunLoop

/// Goal: messages arrive once, whole and in order, and no peer makes a port wait, grow, trap or keep its socket.
/// Method: the peer is the other end of a socket pair, written and read by the test as bytes.
@Suite struct MessagePortTests {
    /// A loop's port, the other end, and what came.
    private final class Play: @unchecked Sendable {
        let loop = EventRunLoop.current
        let sockets = try! MessageSockets()
        let census = Probe.Census()
        var log: [[UInt8]] = []
        var ends: [MessagePortEnd] = []
        var rooms = 0
        var onMessage: (LoopMessagePort<[UInt8]>, [UInt8]) -> Void = { _, _ in }
        var onEnd: (LoopMessagePort<[UInt8]>) -> Void = { _ in }

        func port(
            limits: MessageLimits = MessageLimits(), coding: MessageCoding<[UInt8]> = .bytes
        ) throws -> LoopMessagePort<[UInt8]> {
            let probe = Probe(loop, census)
            #expect(isSocketOpen)
            return try LoopMessagePort(
                descriptor: sockets.own, on: loop, coding: coding, limits: limits,
                onRoom: { [self] _ in withExtendedLifetime(probe) { rooms += 1 } },
                onEnd: { [self] port, end in
                    withExtendedLifetime(probe) { ends.append(end) }
                    onEnd(port)
                },
                handler: { [self] port, message in
                    withExtendedLifetime(probe) { log.append(message) }
                    onMessage(port, message)
                })
        }

        /// Writes to the port as its peer.
        func write(_ bytes: [UInt8]) {
            #expect(Glibc.write(sockets.peer, bytes, bytes.count) == bytes.count)
        }

        func read(_ most: Int = 1 << 20) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: most)
            let count = recv(sockets.peer, &bytes, most, CInt(MSG_DONTWAIT))
            return Array(bytes.prefix(max(0, count)))
        }

        func endPeer() {
            if isSocketOpen {
                closePeer(sockets.peer, of: sockets.own)
            } else {
                close(sockets.peer)
            }
        }

        /// Runs until nothing is left to do at once.
        func settle() {
            while loop.run(mode: .default, for: .zero, returnAfterSourceHandled: true)
                == .handledSource
            {}
        }

        /// Another test may have got the number.
        var isSocketOpen: Bool { Self.file(sockets.own) == file }
        /// Before Linux 6.16, a thread of its own may close it.
        var isSocketClosed: Bool { eventually { isSocketOpen ? nil : true } == true }
        private lazy var file = Self.file(sockets.own)
        private static func file(_ number: CInt) -> String? {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
        }
    }

    private static func framed(_ messages: [UInt8]...) -> [UInt8] {
        messages.flatMap { MessageFrames.header($0.count) + $0 }
    }

    /// Plays on a fresh thread; at its end nothing may be left of the port.
    private static func play(_ body: @escaping @Sendable (Play) throws -> Void) throws {
        let census = Mutex<Probe.Census?>(nil)
        try onFreshThreadThrowing {
            let play = Play()
            census.withLock { $0 = play.census }
            try body(play)
            #expect(play.ends.count <= 1)
        }
        let left = try #require(census.withLock { $0 })
        #expect(left.alive == 0 && left.underLock == 0)
    }

    @Test func `messages go both ways, whole and in order, empty ones too`() throws {
        try Self.play { play in
            let port = try play.port()
            play.onMessage = { port, message in try? port.send(message + [9]) }
            play.write(Self.framed([1, 2], [], [3]))
            play.settle()
            #expect(play.log == [[1, 2], [], [3]])
            #expect(play.read() == Self.framed([1, 2, 9], [9], [3, 9]))
            port.close()
            #expect(!port.isOpen && play.isSocketClosed)
            #expect(play.census.alive == 0)
            #expect(play.loop.run(for: .zero) == .finished)
            #expect(throws: MessageRefusal.closed) { try port.send([1]) }
            #expect(play.ends == [])
            play.endPeer()
        }
    }

    /// The app's coding may take long; another thread closes the port meanwhile.
    @Test(arguments: [false, true])
    func `nothing is called after a close during the decoding`(isRefused: Bool) throws {
        struct Refused: Error {}
        try Self.play { play in
            let opened = Mutex<LoopMessagePort<[UInt8]>?>(nil)
            let coding = MessageCoding<[UInt8]>(encode: { $0 }) { bytes in
                opened.withLock { $0 }?.close()
                if isRefused { throw Refused() }
                return bytes
            }
            let port = try play.port(coding: coding)
            opened.withLock { $0 = port }
            play.write(Self.framed([1], [2]))
            play.settle()
            opened.withLock { $0 = nil }
            #expect(play.log == [] && play.ends == [])
            play.endPeer()
        }
    }

    @Test func `a nested run at the end of the stream does not see it again`() throws {
        try Self.play { play in
            let port = try play.port()
            nonisolated(unsafe) var iterations = 0
            play.loop.add(
                LoopObserver(activities: .beforeTimers) { _, _ in iterations += 1 },
                toMode: .default)
            play.loop.add(LoopSource { _ in }, toMode: .default)
            play.onEnd = { _ in play.loop.run(for: .milliseconds(20)) }
            play.endPeer()
            play.settle()
            #expect(play.ends == [.finished])
            #expect(iterations < 20)
            #expect(!port.isOpen)
        }
    }

    @Test func `a message that comes byte by byte is handed over at its last one`() throws {
        try Self.play { play in
            let port = try play.port()
            for byte in Self.framed([1, 2, 3], [4]) {
                play.write([byte])
                play.settle()
            }
            #expect(play.log == [[1, 2, 3], [4]])
            port.close()
            play.endPeer()
        }
    }

    @Test(arguments: [
        ([], MessagePortEnd.finished), ([0], .cutOff), ([0, 0, 0, 5, 1, 2], .cutOff),
        ([0, 0, 0, 1, 7], .finished), ([0, 0, 0, 1, 7, 0, 0], .cutOff),
        ([255, 255, 255, 255], .tooLong(4_294_967_295)), ([0, 0, 1, 1, 5, 5], .tooLong(257)),
    ])
    func
        `a peer that dies anywhere, or announces too much, ends the port once, behind its messages`(
            bytes: [UInt8], end: MessagePortEnd
        ) throws
    {
        try Self.play { play in
            let port = try play.port(limits: MessageLimits(messageSize: 256))
            play.write(Self.framed([1]) + bytes)
            if case .tooLong = end {} else { play.endPeer() }
            play.settle()
            #expect(play.log.first == [1])
            #expect(play.ends == [end])
            #expect(!port.isOpen && play.isSocketClosed)
            #expect(play.census.alive == 0)
            #expect(throws: MessageRefusal.closed) { try port.send([1]) }
            #expect(play.loop.run(for: .zero) == .finished)
            if case .tooLong = end { play.endPeer() }
        }
    }

    @Test func `what cannot be decoded or encoded ends the port, or is refused`() throws {
        struct Odd: Error {}
        try Self.play { play in
            let port = try play.port(
                limits: MessageLimits(messageSize: 3),
                coding: MessageCoding(
                    encode: { if $0 == [13] { throw Odd() } else { return $0 } },
                    decode: { if $0 == [13] { throw Odd() } else { return $0 } }))
            #expect(throws: MessageRefusal.unencodable("Odd()")) { try port.send([13]) }
            #expect(throws: MessageRefusal.tooLong(4)) { try port.send([1, 2, 3, 4]) }
            play.write(Self.framed([1], [13], [2]))
            play.settle()
            #expect(play.log == [[1]])
            #expect(play.ends == [.undecodable("Odd()")])
            #expect(play.isSocketClosed && play.census.alive == 0)
            play.endPeer()
        }
    }

    @Test func `a peer that never reads is given so much and no more, and all of it once it reads`()
        throws
    {
        try Self.play { play in
            let port = try play.port(
                limits: MessageLimits(messageSize: 50_000, queueSize: 200_000))
            var sent: [[UInt8]] = []
            var refusals = 0
            while refusals < 3 {
                let message = [UInt8](
                    repeating: UInt8(truncatingIfNeeded: sent.count), count: 10_000)
                do throws(MessageRefusal) {
                    try port.send(message)
                    sent.append(message)
                } catch {
                    #expect(error == .full)
                    refusals += 1
                }
            }
            #expect(port.waitingSize <= 200_000 && port.waitingSize > 150_000)
            #expect(play.rooms == 0)
            var frames = MessageFrames(longest: 50_000)
            var received: [[UInt8]] = []
            while received.count < sent.count {
                play.settle()
                let bytes = play.read()
                try #require(!bytes.isEmpty)
                bytes.withUnsafeBytes { frames.append($0) }
                while case .message(let message) = frames.next() { received.append(message) }
            }
            play.settle()
            #expect(received == sent)
            #expect(play.rooms == 1)
            #expect(port.waitingSize == 0)
            // Nothing wakes the loop now: it does not wait for room without need.
            #expect(
                play.loop.run(mode: .default, for: .zero, returnAfterSourceHandled: true)
                    == .timedOut)
            port.close()
            play.endPeer()
        }
    }

    @Test func `one message is taken in any case, another is not while some of it waits`() throws {
        try Self.play { play in
            let port = try play.port(limits: MessageLimits(messageSize: 1 << 20, queueSize: 0))
            try port.send([UInt8](repeating: 1, count: 1 << 20))
            #expect(port.waitingSize > 0)
            #expect(throws: MessageRefusal.full) { try port.send([]) }
            port.close()
            #expect(port.waitingSize == 0 && play.census.alive == 0)
            play.endPeer()
        }
    }

    @Test func `a peer that dies without reading what it was sent ends the port`() throws {
        try Self.play { play in
            let port = try play.port(limits: MessageLimits(queueSize: 1_000_000))
            while (try? port.send([UInt8](repeating: 1, count: 10_000))) != nil {}
            play.write(Self.framed([5]))
            play.endPeer()
            play.settle()
            #expect(play.log == [[5]], "what it had sent before is handed over")
            #expect(play.ends == [.finished])
            #expect(!port.isOpen && play.isSocketClosed && play.census.alive == 0)
        }
    }

    @Test func `a flood does not keep timers from firing`() throws {
        try Self.play { play in
            let port = try play.port()
            nonisolated(unsafe) var rounds = 0
            play.loop.add(
                LoopTimer(after: .zero, every: .nanoseconds(1)) { _ in
                    rounds += 1
                    if rounds == 100 { play.loop.stop() }
                }, toMode: .default)
            let flood = [UInt8](repeating: 0, count: 60_000)
            let end = dup(play.sockets.peer)
            let writer = Thread {
                while send(end, flood, flood.count, CInt(MSG_NOSIGNAL)) > 0 {}
                close(end)
            }
            writer.start()
            play.loop.run()
            #expect(rounds == 100)
            port.close()
            play.endPeer()
        }
    }

    /// The socket has room for more than a turn's bytes, and the peer has sent more than a turn's messages.
    @Test func `a turn of a port is bounded, in bytes written and in messages handed over`() throws
    {
        try Self.play { play in
            let port = try play.port()
            while (try? port.send([UInt8](repeating: 1, count: 100_000))) != nil {}
            let full = play.read()
            #expect(full.count > 100_000)
            let before = port.waitingSize
            play.loop.run(for: .zero)
            #expect((1...65_536).contains(before - port.waitingSize))
            let messages = (0..<2_000).map { [UInt8($0 >> 8), UInt8($0 & 255)] }
            for isEnd in [false, true] {
                play.log = []
                play.write(messages.flatMap { Self.framed($0) })
                // From here on the socket is always readable.
                if isEnd { shutdown(play.sockets.peer, CInt(SHUT_WR)) }
                play.loop.run(for: .zero)
                play.loop.run(for: .zero)
                #expect((1...1_200).contains(play.log.count))
                #expect(play.ends == [])
                for _ in 0..<100 { play.loop.run(for: .zero) }
                #expect(play.log == messages)
            }
            #expect(play.ends == [.finished])
            port.close()
            play.endPeer()
        }
    }

    @Test func `a nested run continues a turn that was bounded`() throws {
        try Self.play { play in
            let port = try play.port()
            play.onMessage = { _, _ in
                if play.log.count.isMultiple(of: 100) {
                    play.loop.run(mode: .default, for: .zero, returnAfterSourceHandled: true)
                }
            }
            let messages = (0..<2_000).map { [UInt8($0 >> 8), UInt8($0 & 255)] }
            play.write(messages.flatMap { Self.framed($0) })
            play.settle()
            #expect(play.log == messages)
            port.close()
            play.endPeer()
        }
    }

    @Test func `a run that is nested in a handler goes on with the next message`() throws {
        try Self.play { play in
            let port = try play.port()
            nonisolated(unsafe) var order: [String] = []
            play.onMessage = { _, message in
                order.append("begin \(message[0])")
                if message[0] < 3 {
                    play.loop.run(
                        mode: .default, for: .zero, returnAfterSourceHandled: true)
                }
                order.append("end \(message[0])")
            }
            play.write(Self.framed([1], [2], [3], [4]))
            play.settle()
            #expect(
                order == [
                    "begin 1", "begin 2", "begin 3", "end 3", "begin 4", "end 4", "end 2", "end 1",
                ])
            port.close()
            play.endPeer()
        }
    }

    @Test func `nothing is handed over after a close in a handler`() throws {
        try Self.play { play in
            let port = try play.port()
            play.onMessage = { port, _ in port.close() }
            play.write(Self.framed([1], [2]))
            play.settle()
            #expect(play.log == [[1]])
            #expect(play.ends == [])
            #expect(!port.isOpen && play.isSocketClosed && play.census.alive == 0)
            play.endPeer()
        }
    }

    @Test func `finishing sends what waits and the peer's last messages are handed over`() throws {
        try Self.play { play in
            let port = try play.port(limits: MessageLimits(queueSize: 1_000_000))
            var count = 0
            while (try? port.send([UInt8](repeating: 1, count: 100_000))) != nil { count += 1 }
            port.finish()
            #expect(throws: MessageRefusal.closed) { try port.send([1]) }
            var received = 0
            while true {
                play.settle()
                let bytes = play.read()
                received += bytes.count
                if bytes.isEmpty { break }
            }
            #expect(received == count * 100_004)
            #expect(port.isOpen)
            play.write(Self.framed([7]))
            play.settle()
            #expect(play.log == [[7]])
            play.endPeer()
            play.settle()
            #expect(play.ends == [.finished])
            #expect(!port.isOpen && play.isSocketClosed && play.census.alive == 0)
        }
    }

    @Test func `a peer that has finished still gets what is sent at its end`() throws {
        try Self.play { play in
            let port = try play.port()
            play.onEnd = { port in
                for number in 0..<100 as Range<UInt8> {
                    try? port.send([UInt8](repeating: number, count: 9_000))
                }
            }
            play.write(Self.framed([1]))
            shutdown(play.sockets.peer, CInt(SHUT_WR))
            play.settle()
            #expect(play.ends == [.finished])
            #expect(port.isOpen && port.waitingSize > 0)
            #expect(throws: MessageRefusal.closed) { try port.send([1]) }
            var received = 0
            while port.isOpen {
                received += play.read().count
                play.settle()
            }
            received += play.read().count
            #expect(received == 100 * 9_004)
            #expect(play.isSocketClosed && play.census.alive == 0)
            play.endPeer()
        }
    }

    @Test func `the end of the thread closes the port`() throws {
        nonisolated(unsafe) var kept: (LoopMessagePort<[UInt8]>, Play)?
        try Self.play { play in
            kept = (try play.port(), play)
            try kept!.0.send([1])
        }
        let (port, play) = try #require(kept)
        #expect(!port.isOpen && play.isSocketClosed && play.census.alive == 0)
        #expect(throws: MessageRefusal.closed) { try port.send([2]) }
        #expect(play.read() == Self.framed([1]))
        play.endPeer()
        let sockets = try MessageSockets()
        #expect(throws: LoopError.stopped) {
            try LoopMessagePort(descriptor: sockets.own, on: play.loop, coding: .bytes) { _, _ in }
        }
        var byte: UInt8 = 0
        #expect(recv(sockets.peer, &byte, 1, 0) == 0, "it is the port's to close")
        close(sockets.peer)
    }

    @Test func `what is no stream socket is refused`() throws {
        var ends: [CInt] = [0, 0]
        #expect(pipe(&ends) == 0)
        // A process that another test starts would keep the pipe open.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        #expect(throws: LoopError.system(call: "getsockopt", errno: ENOTSOCK)) {
            try LoopMessagePort(descriptor: ends[1], on: .current, coding: .bytes) { _, _ in }
        }
        #expect(throws: LoopError.system(call: "getsockopt", errno: EBADF)) {
            try LoopMessagePort(descriptor: 1 << 20, on: .current, coding: .bytes) { _, _ in }
        }
        var byte: UInt8 = 0
        #expect(read(ends[0], &byte, 1) == 0, "it is the port's to close")
        close(ends[0])
        let datagrams = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue), 0)
        #expect(throws: LoopError.system(call: "getsockopt", errno: EPROTOTYPE)) {
            try LoopMessagePort(descriptor: datagrams, on: .current, coding: .bytes) { _, _ in }
        }
    }

    /// The last close of a TCP socket waits, here for 20 s, until its peer has taken everything.
    @Test(arguments: [true, false])
    func `the loop does not wait for the end of a descriptor that a peer has passed`(
        isRead: Bool
    ) throws {
        try Self.play { play in
            let passed = try LingeringSocket(seconds: 20)
            #expect(passed.pass(through: play.sockets.peer, with: Self.framed([1])))
            let port = try play.port()
            let start = ContinuousClock.now
            if isRead {
                play.settle()
                #expect(play.log == [[1]])
                // What comes behind it waits until it is closed.
                play.write(Self.framed([2]))
                play.settle()
            }
            if isRead {
                passed.takeEverything()
                #expect(
                    eventually {
                        play.settle()
                        return play.log == [[1], [2]] ? true : nil
                    } == true)
            }
            port.close()
            #expect(ContinuousClock.now - start < .seconds(20))
            passed.takeEverything()
            #expect(play.isSocketClosed)
            play.endPeer()
        }
    }

    @Test func `a descriptor that comes later is refused, or dropped elsewhere`() throws {
        try Self.play { play in
            let port = try play.port()
            let passed = try LingeringSocket(seconds: 20)
            let start = ContinuousClock.now
            let isPassed = passed.pass(through: play.sockets.peer, with: Self.framed([1]))
            if isPassed {
                play.settle()
                #expect(play.log == [[1]])
            } else {
                #expect(errno == EPERM)
            }
            port.close()
            #expect(ContinuousClock.now - start < .seconds(20))
            if isPassed { passed.takeEverything() }
            play.endPeer()
        }
    }

    @Test func `a port that was closed keeps nothing of what waited`() throws {
        try Self.play { play in
            let port = try play.port(limits: MessageLimits(messageSize: 1 << 20))
            while (try? port.send([UInt8](repeating: 1, count: 1 << 20))) != nil {}
            #expect(port.link.keptSize > 1 << 20)
            port.close()
            #expect(port.link.keptSize == 0)
            play.endPeer()
        }
    }

    @Test func `a closed port lets go of its coding`() throws {
        try Self.play { play in
            let coding: MessageCoding<[UInt8]>
            do {
                let probe = Probe(play.loop, play.census)
                coding = MessageCoding(
                    encode: { bytes in withExtendedLifetime(probe) { bytes } },
                    decode: { bytes in withExtendedLifetime(probe) { bytes } })
            }
            let port = try play.port(coding: consume coding)
            #expect(play.census.alive == 2)
            port.close()
            #expect(play.census.alive == 0)
            #expect(throws: MessageRefusal.closed) { try port.send([1]) }
            play.endPeer()
        }
    }

    @Test func `text that is no UTF-8 ends the port`() throws {
        try onFreshThreadThrowing {
            let (loop, sockets) = (EventRunLoop.current, try MessageSockets())
            nonisolated(unsafe) var log: [String] = []
            let port = try LoopMessagePort(
                descriptor: sockets.own, on: loop, coding: .text,
                onEnd: { _, end in log.append("\(end)") }
            ) { port, text in log.append(text) }
            try port.send("ä")
            var bytes = [UInt8](repeating: 0, count: 9)
            #expect(read(sockets.peer, &bytes, 9) == 6)
            bytes[6...8] = [0, 0, 0]
            #expect(write(sockets.peer, bytes, 6) == 6)
            #expect(write(sockets.peer, [0, 0, 0, 1, 0xff] as [UInt8], 5) == 5)
            #expect(loop.run(mode: .default, for: .seconds(60)) == .finished)
            #expect(log == ["ä", "undecodable(\"not UTF-8\")"])
            close(sockets.peer)
        }
    }

    /// Two ports, threads that send through both, and peers that read when they like.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func `what several threads send arrives once, each thread's in order`(seed: UInt64) throws {
        let (sender, receiver) = (try LoopThread(name: "sender"), try LoopThread(name: "receiver"))
        let sockets = try MessageSockets()
        let count = 400
        nonisolated(unsafe) var received: [[UInt8]] = []
        let done = DispatchSemaphore(value: 0)
        let from = try LoopMessagePort(
            descriptor: sockets.own, on: sender.loop, coding: .bytes,
            limits: MessageLimits(queueSize: 100_000)
        ) { _, _ in }
        let to = try LoopMessagePort(
            descriptor: sockets.peer, on: receiver.loop, coding: .bytes,
            onEnd: { _, end in
                #expect(end == .finished)
                done.signal()
            }
        ) { _, message in received.append(message) }
        let senders = DispatchGroup()
        for number in 0..<3 as Range<UInt8> {
            senders.enter()
            Thread {
                var random = SeededGenerator(seed: seed << 8 | UInt64(number))
                for index in 0..<count {
                    let size = Int.random(in: 0...5_000, using: &random)
                    let message =
                        [number, UInt8(index >> 8), UInt8(index & 255)]
                        + [UInt8](repeating: number, count: size)
                    while (try? from.send(message)) == nil { sched_yield() }
                }
                senders.leave()
            }.start()
        }
        senders.wait()
        from.finish()
        done.wait()
        sender.stop()
        receiver.stop()
        #expect(received.count == 3 * count)
        for number in 0..<3 as Range<UInt8> {
            let own = received.filter { $0[0] == number }
            #expect(own.map { Int($0[1]) << 8 | Int($0[2]) } == Array(0..<count))
            #expect(own.allSatisfy { $0.dropFirst(3).allSatisfy { $0 == number } })
        }
        #expect(!from.isOpen && !to.isOpen)
    }

    /// A thread closes while others send: the number of the socket may be another's at once, and must not be written to.
    @Test func `closing while others send touches no descriptor that comes after`() throws {
        let thread = try LoopThread()
        for _ in 0..<100 {
            let sockets = try MessageSockets()
            let port = try LoopMessagePort(
                descriptor: sockets.own, on: thread.loop, coding: .bytes
            ) { _, _ in }
            let started = DispatchSemaphore(value: 0)
            let sender = DispatchGroup()
            for _ in 0..<2 {
                sender.enter()
                Thread {
                    started.signal()
                    let message = [UInt8](repeating: 1, count: 100)
                    while true {
                        do throws(MessageRefusal) { try port.send(message) } catch {
                            if error == .closed { break }
                        }
                    }
                    sender.leave()
                }.start()
                started.wait()
            }
            port.close()
            // Taken as soon as the number is free.
            var pairs: [MessageSockets] = []
            for _ in 0..<3 { pairs.append(try MessageSockets()) }
            sender.wait()
            for pair in pairs {
                var byte: UInt8 = 0
                #expect(recv(pair.peer, &byte, 1, CInt(MSG_DONTWAIT)) == -1)
                #expect(recv(pair.own, &byte, 1, CInt(MSG_DONTWAIT)) == -1)
                close(pair.own)
                close(pair.peer)
            }
            close(sockets.peer)
        }
        thread.stop()
    }
}

/// A TCP socket with bytes that its peer does not take: its last close waits for that.
private final class LingeringSocket {
    private var socket: CInt
    private let peer: CInt

    init(seconds: CInt) throws {
        let listener = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        socket = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        let own = socket
        let isConnected = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 1) == 0
                    && getsockname(listener, $0, &size) == 0 && connect(own, $0, size) == 0
            }
        }
        peer = accept(listener, nil, nil)
        try #require(isConnected && peer >= 0)
        let bytes = [UInt8](repeating: 1, count: 65_536)
        while send(socket, bytes, bytes.count, CInt(MSG_DONTWAIT)) > 0 {}
        var option = linger(l_onoff: 1, l_linger: seconds)
        try #require(
            setsockopt(
                socket, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size)) == 0)
    }

    deinit {
        close(peer)
        if socket >= 0 { close(socket) }
    }

    /// Sends bytes with the socket, which is closed here then. False with errno when it was refused.
    func pass(through channel: CInt, with bytes: [UInt8]) -> Bool {
        var bytes = bytes
        // One control message: its length, SOL_SOCKET, SCM_RIGHTS, the number.
        var control: [UInt64] = [20, 1 | 1 << 32, UInt64(UInt32(bitPattern: socket))]
        let sent = bytes.withUnsafeMutableBytes { bytes in
            control.withUnsafeMutableBytes { control in
                var part = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
                return withUnsafeMutablePointer(to: &part) { part in
                    var message = msghdr()
                    message.msg_iov = part
                    message.msg_iovlen = 1
                    message.msg_control = control.baseAddress
                    message.msg_controllen = control.count
                    return sendmsg(channel, &message, 0)
                }
            }
        }
        guard sent == bytes.count else { return false }
        close(socket)
        socket = -1
        return true
    }

    /// Up to the end, which comes when the socket is closed.
    func takeEverything() {
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        while recv(peer, &bytes, bytes.count, 0) > 0 {}
    }
}
