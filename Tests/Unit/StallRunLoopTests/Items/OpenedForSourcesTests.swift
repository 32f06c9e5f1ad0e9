import CLinux
import Foundation
import LoopConformance
import TestSupport
import Testing

@testable import StallRunLoop

/// Goal: what the library opens for a source is its own, in its own process: a file that the app has under that number later
/// is not read, closed or waited for, and a forked child takes nothing of its parent.
/// Method: a table over the kinds of source that open something, or take a descriptor over. Each in a process of its own.
@Suite struct OpenedForSourcesTests {
    @Test(arguments: OpenedKind.allCases)
    func `a file of the app with the number of a source is left alone`(kind: OpenedKind) async {
        await #expect(processExitsWith: .success) { [kind] in
            onFreshThread { exit(kind.playReuse()) }
        }
    }

    @Test(arguments: OpenedKind.allCases)
    func `the file of another source with its number is left alone`(kind: OpenedKind) async {
        await #expect(processExitsWith: .success) { [kind] in
            onFreshThread { exit(kind.playOther()) }
        }
    }

    @Test(arguments: OpenedKind.allCases)
    func `a forked child takes no event of its parent`(kind: OpenedKind) async {
        await #expect(processExitsWith: .success) { [kind] in
            onFreshThread { exit(kind.playFork()) }
        }
    }
}

enum OpenedKind: String, CaseIterable, Codable {
    case signal, file, child, port, plainFile
}

/// A source, with what was reported.
private final class Opened: @unchecked Sendable {
    var log: [String] = []
    var number: CInt = -1
    var invalidate: () -> Void = {}
    /// Makes something happen that is to be reported.
    var act: () -> Void = {}
}

extension OpenedKind {
    private static let directory = NSTemporaryDirectory() + "opened-\(getpid())"

    private func make(on loop: EventRunLoop) throws -> Opened {
        let opened = Opened()
        let before = openNumbers()
        switch self {
        case .signal:
            let source = try SignalSource([SIGUSR1]) { signal, _ in opened.log.append("\(signal)") }
            try loop.add(source, toMode: .default)
            opened.invalidate = { source.invalidate() }
            // Other threads do not block it.
            opened.act = { raise(SIGUSR1) }
        case .file:
            mkdir(Self.directory, 0o700)
            let source = try FileSource(path: Self.directory, events: .created) { events, name in
                opened.log.append("\(events.rawValue) \(name ?? "-")")
            }
            try loop.add(source, toMode: .default)
            opened.invalidate = { source.invalidate() }
            opened.act = { close(creat(Self.directory + "/one", 0o600)) }
        case .child:
            let child = forkProcess { sleep(15) == 0 ? 0 : 1 }
            let source = try ChildProcessSource(pid: child) { opened.log.append("\($0)") }
            try loop.add(source, toMode: .default)
            opened.invalidate = {
                source.invalidate()
                kill(child, SIGKILL)
            }
            opened.act = { kill(child, SIGKILL) }
        case .port:
            let sockets = try MessageSockets()
            let port = try LoopMessagePort(
                descriptor: sockets.own, on: loop, inMode: .default, coding: .text,
                onEnd: { opened.log.append("\($1)") }
            ) { opened.log.append($1) }
            opened.number = sockets.own
            opened.invalidate = { port.close() }
            opened.act = {
                _ = try? port.send("to the peer")
                send(sockets.peer, [0, 0, 0, 1, 65] as [UInt8], 5, CInt(MSG_NOSIGNAL))
            }
            return opened
        case .plainFile:
            let path = Self.directory + "-plain"
            let file = open(path, O_CREAT | O_RDONLY, 0o600)
            let source = DescriptorSource(descriptor: file) { _, _ in
                if opened.log.count < 3 { opened.log.append("ready") }
            }
            try loop.add(source, toMode: .default)
            opened.number = openNumbers().subtracting(before).subtracting([file]).max() ?? -1
            opened.invalidate = { source.invalidate() }
            return opened
        }
        // The loop may have opened its set as well, after it.
        opened.number = openNumbers().subtracting(before).min() ?? -1
        return opened
    }

    /// The reports of the event that `act` makes, once the number has been the app's.
    private var afterReuse: [String] {
        switch self {
        case .signal: ["\(SIGUSR1)"]
        // Events in between may have been missed.
        case .file: ["64 -", "1 one"]
        case .child: ["signalled(\(SIGKILL))"]
        case .port: ["failed(errno: \(EBADF))"]
        case .plainFile: ["ready", "ready", "ready"]
        }
    }

    /// Once more if another thread of the process, such as that of the tests, closed its file in that moment: the number
    /// was open before then, and is not seen to be new.
    private func makeSeen(on loop: EventRunLoop) throws -> Opened {
        var opened = try make(on: loop)
        for _ in 0..<5 where opened.number <= 2 {
            opened.invalidate()
            opened = try make(on: loop)
        }
        return opened
    }

    private func loopAtWork() -> EventRunLoop {
        let loop = EventRunLoop.current
        loop.schedule(every: .milliseconds(1)) { _ in }
        loop.run(for: .milliseconds(2))
        return loop
    }

    fileprivate func playReuse() -> CInt {
        let loop = loopAtWork()
        guard let opened = try? makeSeen(on: loop), opened.number > 2 else { return 2 }
        loop.run(for: .milliseconds(5))
        if self == .plainFile { opened.log = [] }
        guard opened.log.isEmpty else { return 3 }
        var ends: [CInt] = [0, 0]
        pipe(&ends)
        let theirs = takeNumber(opened.number) { dup(ends[0]) }
        guard theirs == opened.number else { return 4 }
        write(ends[1], [UInt8](repeating: 65, count: 1_000), 1_000)
        loop.run(for: .milliseconds(50))
        opened.act()
        for _ in 0..<200 where opened.log.count < afterReuse.count {
            loop.run(for: .milliseconds(5))
        }
        loop.run(for: .milliseconds(5))
        guard opened.log == afterReuse else {
            print(opened.log)
            return 5
        }
        opened.invalidate()
        var bytes = [UInt8](repeating: 0, count: 2_000)
        guard fcntl(theirs, F_GETFD) != -1 else { return 6 }
        return read(theirs, &bytes, bytes.count) == 1_000 ? 0 : 7
    }

    /// Every other kind takes the number. Once more if another thread of the process closed or opened a file in between.
    fileprivate func playOther() -> CInt {
        let loop = loopAtWork()
        for other in OpenedKind.allCases where other != .port && other != .plainFile {
            var status: CInt = 4
            for _ in 0..<5 where status == 4 {
                do { status = try play(other, on: loop) } catch { return error.exitCode }
            }
            guard status == 0 else { return status }
        }
        return 0
    }

    /// - Returns: 4 if the other source has another number.
    private func play(_ other: OpenedKind, on loop: EventRunLoop) throws -> CInt {
        let opened = try makeSeen(on: loop)
        guard opened.number > 2 else { return 2 }
        loop.run(for: .milliseconds(2))
        // All numbers below are taken.
        var fillers: [CInt] = []
        defer { for filler in fillers { close(filler) } }
        while true {
            let filler = dup(opened.number)
            if filler > opened.number {
                close(filler)
                break
            }
            fillers.append(filler)
        }
        close(opened.number)
        let taker = try other.make(on: loop)
        opened.invalidate()
        defer {
            taker.invalidate()
            unlink(Self.directory + "/one")
        }
        guard taker.number == opened.number else { return 4 }
        guard fcntl(taker.number, F_GETFD) != -1 else { return 5 }
        taker.act()
        for _ in 0..<200 where taker.log.isEmpty { loop.run(for: .milliseconds(5)) }
        return taker.log.isEmpty ? 6 : 0
    }

    fileprivate func playFork() -> CInt {
        let loop = loopAtWork()
        guard let opened = try? make(on: loop) else { return 2 }
        loop.run(for: .milliseconds(2))
        opened.log = []
        var (begin, end): ([CInt], [CInt]) = ([0, 0], [0, 0])
        pipe(&begin)
        pipe(&end)
        var byte: UInt8 = 0
        let child = forkProcess {
            close(end[1])
            loop.run(for: .milliseconds(5))
            write(begin[1], &byte, 1)
            // The event happens, and the parent does not look at it yet.
            read(end[0], &byte, 1)
            loop.run(for: .milliseconds(20))
            switch self {
            // It watches by itself, and may have missed something.
            case .file: return opened.log == ["64 -", "1 one"] ? 0 : 3
            case .signal:
                guard opened.log.isEmpty else { return 4 }
                opened.act()
                for _ in 0..<200 where opened.log.isEmpty { loop.run(for: .milliseconds(5)) }
                return opened.log == ["\(SIGUSR1)"] ? 0 : 5
            case .child, .port: return opened.log.isEmpty ? 0 : 6
            case .plainFile: return opened.log == ["ready", "ready", "ready"] ? 0 : 7
            }
        }
        read(begin[0], &byte, 1)
        opened.act()
        usleep(2_000)
        write(end[1], &byte, 1)
        let status = wait(for: child)
        guard status == 0 else { return 10 + CInt(status >> 8) }
        for _ in 0..<200 where opened.log.isEmpty { loop.run(for: .milliseconds(5)) }
        switch self {
        case .signal: return opened.log == ["\(SIGUSR1)"] ? 0 : 8
        case .file: return opened.log == ["1 one"] ? 0 : 9
        case .child: return opened.log == ["signalled(\(SIGKILL))"] ? 0 : 8
        case .port: return opened.log == ["A"] ? 0 : 9
        case .plainFile: return opened.log.isEmpty ? 9 : 0
        }
    }
}

extension Error {
    /// Above those of a test.
    fileprivate var exitCode: CInt {
        if case .system(_, let errno) = self as? LoopError { 100 + errno } else { 99 }
    }
}

private func openNumbers() -> Set<CInt> {
    Set((0..<CInt(256)).filter { fcntl($0, F_GETFD) != -1 })
}
