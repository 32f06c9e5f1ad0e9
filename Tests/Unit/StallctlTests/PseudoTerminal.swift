import Foundation
import TestSupport

/// A terminal whose other end is the test.
final class PseudoTerminal {
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

    func start(
        _ arguments: [String], environment: [String: String]? = nil
    ) throws -> Process {
        let process = Process()
        if let environment { process.environment = environment }
        process.executableURL = BuiltProgram.directory.appending(path: "stallctl")
        process.arguments = arguments
        process.standardInput = other
        process.standardOutput = other
        process.standardError = other
        try process.start()
        return process
    }

    /// All that a program draws until it ends.
    func readAll(of program: Process) -> String {
        var text = ""
        func drain(within milliseconds: CInt) -> Bool {
            var input = pollfd(fd: own, events: Int16(POLLIN), revents: 0)
            guard poll(&input, 1, milliseconds) > 0 else { return false }
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = Foundation.read(own, &buffer, buffer.count)
            if count > 0 { text += String(decoding: buffer.prefix(count), as: UTF8.self) }
            return count > 0
        }
        _ = eventually { () -> Bool? in
            while drain(within: 50) {}
            return program.isRunning ? nil : true
        }
        if program.isRunning { program.terminate() }
        program.waitUntilExit()
        while drain(within: 0) {}
        return text
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
