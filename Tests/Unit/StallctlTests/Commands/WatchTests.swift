import Foundation
import StallAnalysis
import StallModel
import Testing
import TestSupport

@testable import stallctl

/// Goal: `top --watch` shows the store's content, handles keys, and restores the terminal, however it ends.
/// Method: the program on a pseudo-terminal of the test's own, which reads the output and checks the modes after.
@Suite struct WatchTests {
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

    /// From the ranking to a group's reports, to a report, and back; then the store is deleted.
    @Test func `a group and a report are opened, and a deleted store is reported`() throws {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "stalls.sqlite").path
            try SampleReports.writeStore(
                at: URL(filePath: path),
                [SampleReports.report(1), SampleReports.report(2, startingAfter: 10)])
            let terminal = try PseudoTerminal(columns: 90, rows: 24)
            let before = terminal.modes
            let program = try terminal.start([
                "top", "--watch", "--interval", "1", "--store", path,
            ])
            defer { if program.isRunning { program.terminate() } }
            #expect(terminal.read(until: "1 of 1; read at ") != nil)
            terminal.type("\r")
            #expect(terminal.read(until: "1 of 2; read at ") != nil)
            terminal.type("\u{1b}[B")
            #expect(terminal.read(until: "2 of 2") != nil)
            terminal.type("\r")
            #expect(terminal.read(until: "main stalled for 1.84 s") != nil)
            terminal.type("\u{1b}")
            #expect(terminal.read(until: "2 of 2; read at ") != nil)
            terminal.type("q")
            #expect(terminal.read(until: "1 of 1; read at ") != nil)
            terminal.type("/wait\r")
            #expect(terminal.read(until: "filter 'wait'") != nil)
            for suffix in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: path + suffix)
            }
            #expect(terminal.read(until: "the store was deleted before ") != nil)
            try SampleReports.writeStore(
                at: URL(filePath: path),
                [SampleReports.report(3, run: SampleReports.run(version: "9.9.9"))],
                run: SampleReports.run(version: "9.9.9"))
            #expect(terminal.read(until: "the store was replaced before ") != nil)
            terminal.type("q")
            #expect(terminal.read(until: "\u{1b}[?1049l") != nil)
            program.waitUntilExit()
            #expect(program.terminationStatus == 0)
            #expect(terminal.modes.c_lflag == before.c_lflag)
        }
    }

    @Test func `^Z gives the terminal back, and fg takes it again`() throws {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "stalls.sqlite").path
            try SampleReports.writeStore(at: URL(filePath: path), [SampleReports.report()])
            let terminal = try PseudoTerminal(columns: 70, rows: 20)
            let before = terminal.modes
            let program = try terminal.start(["top", "--watch", "--store", path])
            defer { if program.isRunning { kill(program.processIdentifier, SIGKILL) } }
            #expect(terminal.read(until: "read at ") != nil)
            kill(program.processIdentifier, SIGTSTP)
            #expect(terminal.read(until: "\u{1b}[?1049l") != nil)
            // In a process group whose parent is gone the kernel stops nothing.
            let isStopped = eventually(within: 5) { () -> Bool? in
                let status = try? String(
                    contentsOfFile: "/proc/\(program.processIdentifier)/status", encoding: .utf8)
                return status?.contains("State:\tT") == true ? true : nil
            }
            if isStopped == true { #expect(terminal.modes.c_lflag == before.c_lflag) }
            kill(program.processIdentifier, SIGCONT)
            #expect(terminal.read(until: "\u{1b}[?1049h") != nil)
            #expect(terminal.read(until: "read at ") != nil)
            terminal.type("q")
            #expect(terminal.read(until: "\u{1b}[?1049l") != nil)
            program.waitUntilExit()
            #expect(terminal.modes.c_lflag == before.c_lflag)
        }
    }
}
