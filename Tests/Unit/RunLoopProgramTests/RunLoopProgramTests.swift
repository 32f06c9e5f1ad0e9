import Foundation
import StallRunLoop
import TestSupport
import Testing

/// Goal: a newcomer's programs work as the documentation has them, in Swift 6 and without unsafe attributes.
/// Method: the programs of Examples/RunLoop, whose texts docs/run-loop-programs.md must show, are run; what they wait for is done
/// once they have said that they wait.
@Suite struct RunLoopProgramTests {
    private static let folder = Repository.root.appending(path: "Examples/RunLoop")

    private static func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    }

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: Repository.root.appending(path: path), encoding: .utf8)
    }

    @Test func `the page shows each program as it is, and nothing else`() throws {
        let page = try Self.text("docs/run-loop-programs.md")
        let shown = page.matches(
            of: /(?s)\(\.\.\/(Examples\/RunLoop\/\w+\/main\.swift)\).*?```swift\n(.*?)```/)
        #expect(
            shown.map { String($0.1) }.sorted()
                == (try Self.names()).map { "Examples/RunLoop/\($0)/main.swift" })
        #expect(page.matches(of: /```swift/).count == shown.count)
        for snippet in shown {
            #expect(try Self.text(String(snippet.1)) == snippet.2, "\(snippet.1)")
        }
    }

    @Test func `no program steps around the compiler's checks`() throws {
        let steps = ["unsafe", "unchecked", "assumeIsolated", "preconcurrency", "@testable"]
        for name in try Self.names() {
            let program = try Self.text("Examples/RunLoop/\(name)/main.swift")
            #expect(!steps.contains { program.contains($0) }, "\(name)")
        }
        let page = try Self.text("docs/run-loop.md")
        #expect(!page.contains("nonisolated(unsafe)") && !page.contains("@unchecked"))
    }

    @Test(arguments: [
        ("TimerCounter", "tick 1\ntick 2\ntick 3\n3 ticks\n"),
        (
            "WorkerResults",
            "4 primes below 10\n25 primes below 100\n168 primes below 1000\n197 primes in all\n"
        ),
        (
            "Cancelling",
            """
            the work had not begun: true
            the reminder is valid: false
            the nap ended: CancellationError()

            """
        ),
        ("MainActorView", "frame 1\nframe 2\nframe 3\nthe view is gone\n"),
        (
            "AsyncBridge",
            "tick\ntick\nfrom the worker: run loop\nlater: the loop's thread has stopped\n"
        ), ("ChildProcess", "one\ntwo\nexited(7)\n"),
        (
            "MessagesToAChild",
            """
            4 primes below 10
            25 primes below 100
            168 primes below 1000
            its messages: finished
            the child: exited(0)

            """
        ),
    ])
    func `a program that ends by itself prints what it should`(name: String, output: String) throws
    {
        let program = try BuiltProgram(name).finish()
        #expect(program.output == output)
        #expect(program.errors == "")
        #expect(program.status == 0)
    }

    @Test func `the echo server sends everything back, to many at once, and closes what has ended`()
        throws
    {
        let server = try BuiltProgram("EchoServer")
        let line = try #require(server.nextLine())
        let port = try #require(line.split(separator: ":").last.flatMap { UInt16($0) })
        let before = Self.descriptorCount(of: server.pid)
        let text = [UInt8]((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        for _ in 0..<3 {
            let clients = try (0..<20).map { _ in try Client(port: port) }
            // Nobody reads yet: the server has to keep what it cannot send, and to serve the others.
            for (number, client) in clients.enumerated() { client.write([UInt8(number)]) }
            for (number, client) in clients.enumerated() {
                #expect(client.read(1) == [UInt8(number)])
            }
            let last = clients[19]
            let echo = last.exchange(text)
            #expect(echo == text)
        }
        #expect(eventually { Self.descriptorCount(of: server.pid) == before ? true : nil } == true)
        server.killNow()
    }

    /// The clients that it cannot accept keep its listener readable.
    @Test func `an echo server without descriptors sleeps, serves whom it has, and accepts later`()
        throws
    {
        let server = try BuiltProgram("EchoServer")
        let line = try #require(server.nextLine())
        let port = try #require(line.split(separator: ":").last.flatMap { UInt16($0) })
        var limit = rlimit(rlim_cur: 24, rlim_max: 24)
        // Swift's Glibc lacks it.
        typealias Limit =
            @convention(c) (
                pid_t, CInt, UnsafePointer<rlimit>, UnsafeMutablePointer<rlimit>?
            ) -> CInt
        let prlimit = unsafeBitCast(dlsym(nil, "prlimit"), to: Limit.self)
        let descriptorLimit: CInt = 7  // RLIMIT_NOFILE
        try #require(prlimit(server.pid, descriptorLimit, &limit, nil) == 0)
        var clients = try (0..<30).map { _ in try Client(port: port) }
        let taken = eventually {
            Self.descriptors(of: server.pid).isSuperset(of: 0..<24) ? true : nil
        }
        try #require(taken == true)
        let (before, start) = (Self.ticks(of: server.pid), ContinuousClock.now)
        for _ in 0..<20 { #expect(clients[0].exchange([1, 2, 3]) == [1, 2, 3]) }
        while ContinuousClock.now - start < .seconds(1) { usleep(50_000) }
        // In ticks of 10 ms: a loop that never sleeps takes 100 a second, or what the machine has left for it.
        #expect(Self.ticks(of: server.pid) - before <= 10)
        let last = clients.removeLast()
        clients.removeAll()
        #expect(last.exchange([4, 5]) == [4, 5])
        server.killNow()
    }

    /// The CPU time of a process.
    private static func ticks(of pid: Int32) -> Int {
        let text = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ""
        let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
        return fields.count > 12 ? (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0) : 0
    }

    private static func descriptorCount(of pid: Int32) -> Int { descriptors(of: pid).count }

    private static func descriptors(of pid: Int32) -> Set<Int> {
        let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd")
        return Set((names ?? []).compactMap { Int($0) })
    }

    @Test func `the folder watch names what changes, and ends with the folder`() throws {
        try withTemporaryDirectory { directory in
            let folder = directory.appending(path: "watched")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let program = try BuiltProgram("FolderWatch", [folder.path])
            #expect(program.nextLine() == "watching")
            try Data("text".utf8).write(to: folder.appending(path: "letter"))
            #expect(program.nextLine() == "letter came")
            #expect(program.nextLine() == "letter was written")
            let elsewhere = directory.appending(path: "elsewhere")
            try Data("text".utf8).write(to: elsewhere)
            try FileManager.default.moveItem(at: elsewhere, to: folder.appending(path: "card"))
            #expect(program.nextLine() == "card came")
            try FileManager.default.removeItem(at: folder.appending(path: "letter"))
            #expect(program.nextLine() == "letter was deleted")
            try FileManager.default.removeItem(at: folder)
            #expect(program.finish() == (0, "card was deleted\nthe folder is gone\n", ""))
        }
    }

    @Test func `signals are events`() throws {
        for last in [SIGTERM, SIGINT] {
            let program = try BuiltProgram("Signals")
            #expect(program.nextLine() == "process \(program.pid)")
            kill(program.pid, SIGHUP)
            #expect(program.nextLine() == "reading the settings again")
            kill(program.pid, last)
            #expect(program.finish() == (0, "ending\n", ""))
        }
    }

    @Test func `standard input is read from a terminal, until Ctrl-D`() throws {
        var (master, slave): (CInt, CInt) = (0, 0)
        try #require(openpty(&master, &slave, nil, nil, nil) == 0)
        let terminal = FileHandle(fileDescriptor: slave, closeOnDealloc: true)
        defer { close(master) }
        let program = try BuiltProgram("StandardInput", input: terminal)
        #expect(program.nextLine() == "type something; Ctrl-D ends it")
        for text in ["first", "second"] {
            #expect(write(master, text + "\n", text.utf8.count + 1) == text.utf8.count + 1)
            #expect(program.nextLine() == "read: \(text)")
        }
        #expect(write(master, "\u{4}", 1) == 1)
        #expect(program.finish() == (0, "the end, after 13 bytes\n", ""))
    }

    @Test(arguments: [
        ("", "the end, after 0 bytes\n"), ("text\n", "read: text\nthe end, after 5 bytes\n"),
    ])
    func `standard input is read from a file, /dev/null and a pipe, to the end`(
        contents: String, output: String
    ) throws {
        try withTemporaryDirectory { directory in
            let file = directory.appending(path: "input")
            try Data(contents.utf8).write(to: file)
            let pipe = Pipe()
            try pipe.fileHandleForWriting.write(contentsOf: Data(contents.utf8))
            try pipe.fileHandleForWriting.close()
            var inputs = [try FileHandle(forReadingFrom: file), pipe.fileHandleForReading]
            if contents.isEmpty { inputs.append(FileHandle.nullDevice) }
            for input in inputs {
                let program = try BuiltProgram("StandardInput", input: input).finish()
                #expect(program.output == "type something; Ctrl-D ends it\n" + output)
                #expect(program.status == 0 && program.errors == "")
            }
        }
    }
}

/// A client of the echo server.
private final class Client {
    private let socket: CInt

    init(port: UInt16) throws {
        socket = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        address.sin_port = port.bigEndian
        let isConnected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        try #require(isConnected)
    }

    deinit { close(socket) }

    func write(_ bytes: [UInt8]) { #expect(Glibc.write(socket, bytes, bytes.count) == bytes.count) }

    func read(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = recv(socket, &bytes, count, CInt(MSG_WAITALL))
        return Array(bytes.prefix(max(0, got)))
    }

    /// Writes and reads at once: the server reads no more while the client does not.
    func exchange(_ bytes: [UInt8]) -> [UInt8] {
        let end = dup(socket)
        Thread {
            _ = bytes.withUnsafeBytes { Glibc.write(end, $0.baseAddress!, $0.count) }
            close(end)
        }.start()
        return read(bytes.count)
    }
}
