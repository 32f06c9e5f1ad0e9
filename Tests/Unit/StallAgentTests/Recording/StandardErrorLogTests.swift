import Foundation
import Glibc
import Logging
import TestSupport
import Testing

@testable import StallAgent

/// Goal: the agent's own log waits for no reader, and says what it dropped.
/// Method: in a process of its own, standard error is a pipe that the test fills and empties.
@Suite struct StandardErrorLogTests {
    @Test func `lines that a full pipe does not take are counted before the next one`() async {
        await #expect(processExitsWith: .success) {
            let pipe = FullPipe()
            let logger = StallMonitor.Configuration.defaultLogger
            logger.warning("first")
            logger.warning("second")
            // The lock of stdio is free.
            fflush(nil)
            pipe.empty()
            logger.warning("third", metadata: ["key": "value"])
            let lines = pipe.empty().split(separator: "\n")
            guard lines.count == 2, lines[0] == "stallwatch: 2 lines before this one were dropped",
                lines[1].hasSuffix(" warning stallwatch: key=value [StallAgentTests] third")
            else { exit(1) }
            // Other processes share the descriptor's flags.
            exit(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK == 0 ? 0 : 2)
        }
    }

    @Test func `a pipe without a reader ends neither the log nor the process`() async {
        await #expect(processExitsWith: .success) {
            let pipe = FullPipe()
            pipe.empty()
            signal(SIGPIPE, SIG_DFL)
            pipe.closeReader()
            StallMonitor.Configuration.defaultLogger.warning("first")
            exit(0)
        }
    }

    @Test func `a file gets whole lines at its end`() async {
        await #expect(processExitsWith: .success) {
            try withTemporaryDirectory { directory in
                let path = directory.appending(path: "log").path
                let file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0o600)
                dup2(file, STDERR_FILENO)
                let logger = StallMonitor.Configuration.defaultLogger
                let long = String(repeating: "x", count: 10_000)
                logger.warning("\(long)")
                write(STDERR_FILENO, "app\n", 4)
                logger.warning("last")
                let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
                exit(
                    lines.count == 3 && lines[0].hasSuffix(long) && lines[1] == "app"
                        && lines[2].hasSuffix("last") ? 0 : 1)
            }
        }
    }
}

/// Standard error of this process.
private struct FullPipe {
    private let ends: [CInt]

    init() {
        var ends: [CInt] = [0, 0]
        pipe(&ends)
        self.ends = ends
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        let bytes = [UInt8](repeating: 0, count: 4096)
        while write(ends[1], bytes, bytes.count) > 0 {}
        _ = fcntl(ends[1], F_SETFL, 0)
        dup2(ends[1], STDERR_FILENO)
    }

    @discardableResult func empty() -> String {
        var text: [UInt8] = []
        var bytes = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(ends[0], &bytes, bytes.count)
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text += bytes[..<count]
        }
    }

    func closeReader() { close(ends[0]) }
}
