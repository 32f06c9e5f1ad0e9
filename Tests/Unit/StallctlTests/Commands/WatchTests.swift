import Foundation
import StallAnalysis
import StallModel
import Testing
import TestSupport

@testable import stallctl

/// Goal: `top --watch` shows the store's content, handles keys, and restores the terminal, however it ends.
/// Method: the program on a pseudo-terminal of the test's own, which reads the output and checks the modes after.
@Suite struct WatchTests {
    @Test func `keys choose the order and the groups`() {
        var choice = WatchChoice(order: .total, group: .signature)
        #expect(choice.legend.hasPrefix("[t total] c count"))
        func obeys(_ key: Character) -> Bool { choice.obey(key) }
        for (key, order) in [("c", RankingOrder.count), ("p", .p95), ("m", .max), ("t", .total)] {
            #expect(obeys(Character(key)) && choice.order == order)
        }
        for _ in GroupKey.allCases { #expect(obeys("g")) }
        #expect(choice.group == .signature && !choice.isDone)
        #expect(!obeys("x") && !obeys("\u{1b}"))
        #expect(obeys("q") && choice.isDone)
    }

    @Test(arguments: [1, 2, 5, 24])
    func `a screen has as many lines as the window`(rows: Int) {
        let view = WatchView(
            content: (0..<10).map { "line \($0)" },
            choice: WatchChoice(order: .total, group: .signature), terminal: .plain)
        #expect(view.lines(rows: rows).count == rows)
        #expect(view.lines(rows: rows).last?.contains("q quit") == true)
    }

    @Test func `without a terminal it says so`() throws {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "stalls.sqlite").path
            try SampleReports.writeStore(
                at: URL(filePath: path), [SampleReports.report()])
            let result = try BuiltProgram("stallctl", ["top", "--watch", "--store", path]).finish()
            #expect(result.status == 64 && result.errors.contains("--watch requires a terminal"))
        }
    }

    /// How it is asked to end: by a key, a signal, or a closed terminal.
    enum End: CaseIterable {
        case key, interrupt, terminate, hangUp
    }

    @Test(arguments: End.allCases)
    func `the terminal is left as it was`(end: End) throws {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "stalls.sqlite").path
            try SampleReports.writeStore(
                at: URL(filePath: path), [SampleReports.report()])
            let terminal = try PseudoTerminal(columns: 70, rows: 20)
            let before = terminal.modes
            let program = try terminal.start(["top", "--watch", "--store", path])
            #expect(terminal.read(until: "waitForWorker()") != nil)
            #expect(terminal.modes.c_lflag != before.c_lflag)
            terminal.type("g")
            #expect(terminal.read(until: "g group: family") != nil)
            switch end {
            case .key: terminal.type("q")
            case .interrupt: kill(program.processIdentifier, SIGINT)
            case .terminate: kill(program.processIdentifier, SIGTERM)
            case .hangUp: terminal.closeOwn()
            }
            if end != .hangUp { #expect(terminal.read(until: "\u{1b}[?1049l") != nil) }
            program.waitUntilExit()
            guard end != .hangUp else { return }
            #expect(terminal.modes.c_lflag == before.c_lflag)
            #expect(program.terminationReason == (end == .key ? .exit : .uncaughtSignal))
            if end == .key { #expect(program.terminationStatus == 0) }
        }
    }
}

/// A terminal whose other end is the test.
private final class PseudoTerminal {
    private var own: CInt
    private let other: FileHandle
    private var drawn = ""

    init(columns: UInt16, rows: UInt16) throws {
        // What grantpt and its like do, which need a feature macro that Swift's Glibc is built without.
        own = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        var (unlocked, number) = (CInt(0), CUnsignedInt(0))
        let (setLock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)  // TIOCSPTLCK, TIOCGPTN
        guard own >= 0, ioctl(own, setLock, &unlocked) == 0, ioctl(own, getNumber, &number) == 0
        else { throw POSIXError(.ENOTTY) }
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        _ = ioctl(own, UInt(TIOCSWINSZ), &size)
        let descriptor = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
        other = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    deinit { closeOwn() }

    func closeOwn() {
        if own >= 0 { close(own) }
        own = -1
    }

    var modes: termios {
        var modes = termios()
        tcgetattr(other.fileDescriptor, &modes)
        return modes
    }

    func start(_ arguments: [String]) throws -> Process {
        let process = Process()
        process.executableURL = BuiltProgram.directory.appending(path: "stallctl")
        process.arguments = arguments
        process.standardInput = other
        process.standardOutput = other
        process.standardError = other
        try process.run()
        return process
    }

    func type(_ key: String) { _ = key.withCString { write(own, $0, strlen($0)) } }

    /// All that is drawn up to a text; nil when it does not come.
    func read(until text: String) -> String? {
        eventually {
            var input = pollfd(fd: own, events: Int16(POLLIN), revents: 0)
            if poll(&input, 1, 50) > 0 {
                var buffer = [UInt8](repeating: 0, count: 4096)
                let count = Foundation.read(own, &buffer, buffer.count)
                if count > 0 { drawn += String(decoding: buffer.prefix(count), as: UTF8.self) }
            }
            guard let end = drawn.range(of: text)?.upperBound else { return nil }
            defer { drawn = String(drawn[end...]) }
            return String(drawn[..<end])
        }
    }
}
