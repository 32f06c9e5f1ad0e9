import CLinux
import Foundation
import LoopConformance
import StallModel
import Testing

@testable import StallRunLoop

/// Goal: messages, signals and child processes reach a loop once each, in order, and within their limits.
@Suite struct ChannelAndProcessTests {
    @Test func `a channel hands over in order, up to its capacity`() {
        onFreshThread {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var log: [Int] = []
            let channel = LoopChannel<Int>(to: loop, capacity: 3) { log.append($0) }
            #expect((0..<5).map { channel.send($0) } == [true, true, true, false, false])
            #expect(channel.count == 3)
            loop.run(for: .zero)
            #expect(log == [0, 1, 2])
            #expect(channel.send(5))
            loop.run(mode: .tracking, for: .zero)
            #expect(log == [0, 1, 2, 5])
            channel.send(6)
            channel.close()
            #expect(!channel.send(7))
            #expect(loop.run(for: .zero) == .finished)
            #expect(log == [0, 1, 2, 5])
        }
    }

    @Test func `what several threads send through a channel arrives once, and wakes the loop`()
        throws
    {
        let thread = try LoopThread()
        nonisolated(unsafe) var sum = 0
        let all = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var count = 0
        let channel = LoopChannel<Int>(to: thread.loop, capacity: 16) { number in
            sum += number
            count += 1
            if count == 4_000 { all.signal() }
        }
        for sender in 0..<4 {
            Thread {
                for number in 0..<1_000 {
                    while !channel.send(sender * 1_000 + number) { sched_yield() }
                }
            }.start()
        }
        all.wait()
        thread.stop()
        #expect(sum == (0..<4_000).reduce(0, +))
        #expect(!channel.send(0))
    }

    @Test func `letting go of a channel takes it out of its loop`() {
        onFreshThread {
            let loop = EventRunLoop.current
            var channel: LoopChannel<Int>? = LoopChannel(to: loop, capacity: 1) { _ in }
            #expect(channel?.send(1) == true)
            channel = nil
            #expect(loop.run(for: .zero) == .finished)
        }
    }

    @Test func `a signal is handed to the loop, with its sender`() async {
        await #expect(processExitsWith: .success) {
            // Directed at this thread: others do not block the signals.
            let loop = EventRunLoop.current
            let source = try SignalSource([SIGUSR1, SIGTERM]) { signal, sender in
                guard sender == getpid() else { exit(2) }
                if signal == SIGTERM { loop.stop() }
            }
            try loop.add(source, toMode: .common)
            pthread_kill(pthread_self(), SIGUSR1)
            loop.perform(after: .milliseconds(1)) { pthread_kill(pthread_self(), SIGTERM) }
            loop.run()
            exit(0)
        }
        #expect(throws: LoopError.system(call: "signalfd", errno: EINVAL)) {
            _ = try SignalSource([999]) { _, _ in }
        }
    }

    @Test func `a signal source that its handler invalidates is not called again`() async {
        await #expect(processExitsWith: .success) {
            let loop = EventRunLoop.current
            let signals = [SIGUSR1, SIGUSR2, SIGTERM]
            nonisolated(unsafe) var sources: [SignalSource] = []
            nonisolated(unsafe) var calls = [0, 0, 0]
            func add(_ number: Int) throws {
                sources.append(
                    try SignalSource(signals) { _, _ in
                        calls[number] += 1
                        if number > 0 { sources[number].invalidate() }
                    })
            }
            // The first reads the signals and hands them on to the second, which is invalidated at the first of them.
            try add(0)
            try add(1)
            try loop.add(sources[0], toMode: .default)
            loop.add(sources[1].inbox, toMode: .default)
            for signal in signals { pthread_kill(pthread_self(), signal) }
            for _ in 0..<3 { loop.run(for: .zero) }
            sources[0].invalidate()
            guard calls == [3, 1, 0] else { exit(2) }
            // The third reads them itself.
            try add(2)
            try loop.add(sources[2], toMode: .default)
            for signal in signals { pthread_kill(pthread_self(), signal) }
            for _ in 0..<3 { loop.run(for: .zero) }
            guard calls == [3, 1, 1] else { exit(3) }
            exit(0)
        }
    }

    @Test func `a signal whose handler raises it again leaves a timer its turn`() async {
        await #expect(processExitsWith: .success) {
            let loop = EventRunLoop.current
            nonisolated(unsafe) var calls = 0
            let source = try SignalSource([SIGUSR1]) { signal, _ in
                calls += 1
                if calls > 10_000 { exit(2) }
                pthread_kill(pthread_self(), signal)
            }
            try loop.add(source, toMode: .default)
            pthread_kill(pthread_self(), SIGUSR1)
            loop.run(for: .zero)
            loop.perform(after: .zero) { exit(0) }
            loop.run()
        }
    }

    @Test(arguments: [
        ("exit 7", ChildProcessEnd.exited(7)), ("kill -9 $$", .signalled(9)), ("true", .exited(0)),
    ])
    func `a child's end is told once`(command: String, end: ChildProcessEnd) throws {
        try onFreshThreadThrowing {
            let loop = EventRunLoop.current
            var pid: pid_t = 0
            let words: [String] = ["/bin/sh", "-c", command]
            var arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) }
            arguments.append(nil)
            defer { arguments.forEach { free($0) } }
            try #require(posix_spawn(&pid, "/bin/sh", nil, nil, arguments, environ) == 0)
            nonisolated(unsafe) var ends: [ChildProcessEnd] = []
            let source = try ChildProcessSource(pid: pid) { ends.append($0) }
            #expect(try loop.add(source, toMode: .default))
            #expect(loop.run(mode: .default) == .finished)
            #expect(ends == [end])
            #expect(kill(pid, 0) == -1 && errno == ESRCH)
        }
    }

    @Test func `a process that is no child, or none at all, is refused or unknown`() {
        #expect(throws: LoopError.system(call: "pidfd_open", errno: ESRCH)) {
            _ = try ChildProcessSource(pid: 4_000_000) { _ in }
        }
    }

    @Test func `the modes that exist, and the next timer of each`() {
        onFreshThread {
            let loop = EventRunLoop.current
            #expect(loop.allModes == [.default])
            #expect(loop.nextTimerFire() == nil)
            let timer = LoopTimer(after: .seconds(60)) { _ in }
            loop.add(timer, toMode: "other")
            #expect(loop.allModes == [.default, "other"])
            #expect(loop.nextTimerFire(inMode: "other") == timer.nextFire)
            #expect(loop.nextTimerFire(inMode: "never used") == nil)
        }
    }
}
