import Foundation
import StallModel
import TestSupport
import Testing

@testable import stallctl

/// Goal: links lead to the file, appear only where they are understood, and no name can end them.
@Suite struct HyperlinkTests {
    @Test(
        arguments: [
            ([:], false), (["TERM": "xterm-256color"], false),
            (["TERM": "xterm-256color", "VTE_VERSION": "7200"], true),
            (["TERM": "xterm-256color", "VTE_VERSION": "4999"], false),
            (["TERM": "xterm-kitty"], true), (["TERM": "foot-extra"], true),
            (["TERM": "xterm-256color", "TERM_PROGRAM": "vscode"], true),
            (["TERM": "dumb", "WT_SESSION": "1"], false),
            (["TERM": "xterm", "WT_SESSION": "1", "CI": "1"], false),
            (["TERM": "xterm", "FORCE_HYPERLINK": "1"], true),
            (["TERM": "xterm-kitty", "FORCE_HYPERLINK": "0"], false),
        ] as [([String: String], Bool)])
    func `terminals that are known to show links get them`(
        environment: [String: String], isShown: Bool
    ) {
        #expect(Hyperlink.isShown(in: environment) == isShown)
    }

    @Test func `every byte that could end the sequence is escaped`() throws {
        for name in hostileNames + ["/a\u{1b}\\b", "/a;b", "/%41 é"] {
            let target = try #require(Hyperlink.file("/src/" + name))
            #expect(target.utf8.allSatisfy { (0x21...0x7e).contains($0) && $0 != 0x3b })
            #expect(
                URL(string: target)?.path(percentEncoded: false) == "/src/" + name
                    || name.contains("\0"))
        }
        #expect(Hyperlink.file("Sync.swift") == nil)
    }

    @Test func `sources are links on a terminal that shows them, with their path if it fits`() {
        var terminal = Terminal.plain
        func shown(_ columns: Int?) -> String {
            terminal.columns = columns
            return ReportView(
                report: SampleReports.report(), stackLimit: 3, terminal: terminal
            ).lines.joined(separator: "\n")
        }
        #expect(shown(nil).contains("  /src/photos/Sync.swift:88"))
        #expect(shown(200).contains("  /src/photos/Sync.swift:88"))
        #expect(shown(60).contains("  Sync.swift:88") && !shown(60).contains("/src/"))
        #expect(!shown(200).contains("\u{1b}"))
        terminal.usesLinks = true
        let linked = shown(60)
        #expect(linked.contains("/src/photos/Sync.swift\u{1b}\\Sync.swift:88\u{1b}]8;;\u{1b}\\"))
        // Links take no columns.
        terminal.usesLinks = false
        #expect(linked.withoutStyles == shown(60))
    }
}

/// Goal: a report is readable at 40, 80 and 200 columns: no word broken, and the function before the image.
@Suite struct NarrowReportTests {
    @Test(arguments: [40, 60, 80, 200])
    func `a report fits the terminal`(columns: Int) throws {
        var terminal = Terminal.plain
        terminal.columns = columns
        let lines = ReportView(
            report: SampleReports.report(), stackLimit: 3, terminal: terminal
        ).lines
        #expect(lines.allSatisfy { $0.displayWidth <= columns }, "\(lines)")
        try expectSnapshot(lines, "show-\(columns)")
    }

    @Test func `the function has the room before the image`() throws {
        var report = SampleReports.report()
        for index in 1...2 {
            report.samples[index].frames[0] = SampleReports.frame(
                "swift_task_enqueueOnDispatchQueueWithALongName(_:_:)",
                image: "/usr/lib/swift/linux/libswift_Concurrency.so")
        }
        var terminal = Terminal.plain
        terminal.columns = 80
        let lines = ReportView(report: report, stackLimit: 1, terminal: terminal).lines
        let frame = try #require(lines.first { $0.contains("swift_task") })
        #expect(frame.contains("swift_task_enqueueOnDispatchQueueWithALongName(_:_:)"))
        #expect(frame.contains("libs") && frame.displayWidth <= 80)
    }

    @Test func `wrapped colors end with their line and begin again on the next`() {
        let text = "\u{1b}[1mone two\u{1b}[0m three"
        #expect(
            text.wrapped(to: 5) == ["\u{1b}[1mone\u{1b}[0m", "\u{1b}[1mtwo\u{1b}[0m", "three"])
        #expect(text.wrapped(to: 13) == [text])
        #expect("a bb cc".wrapped(to: 4, indentation: 2) == ["a bb", "  cc"])
        #expect("  15 ended and more".wrapped(to: 10) == ["  15 ended", "and more"])
    }
}

/// Goal: long text on a terminal is paged as git does it; a pager that is broken harms nothing.
@Suite struct PagerTests {
    @Test(
        arguments: [
            (["TERM": "xterm"], "less"), (["TERM": "dumb"], nil), ([:], nil),
            (["TERM": "xterm", "PAGER": "more -s"], "more -s"),
            (["TERM": "xterm", "PAGER": "more", "STALLWATCH_PAGER": "less -S"], "less -S"),
            (["TERM": "xterm", "PAGER": "more", "STALLWATCH_PAGER": ""], nil),
            (["TERM": "xterm", "PAGER": "cat"], nil), (["TERM": "xterm", "PAGER": " "], nil),
        ] as [([String: String], String?)])
    func `the user's pager is chosen`(environment: [String: String], command: String?) {
        #expect(Pager.chosen(environment) { $0 == "less" }?.command == command)
        let withoutLess = environment["PAGER"] == nil ? nil : command
        #expect(Pager.chosen(environment) { _ in false }?.command == withoutLess)
    }

    @Test func `only less is trusted with links`() {
        for command in ["less", "/usr/bin/less -S", "LESS=FR less"] {
            #expect(Pager(command: command).showsLinks)
        }
        for command in ["more", "lessfilter", "cat | less"] {
            #expect(!Pager(command: command).showsLinks)
        }
    }

    @Test func `text is long if its lines take more rows than the window`() {
        let wide = String(repeating: "x", count: 25)
        #expect(!Pager.isLong(["a", "", "b"], columns: 10, rows: 4))
        #expect(Pager.isLong(["a", "", "b"], columns: 10, rows: 3))
        #expect(Pager.isLong([wide], columns: 10, rows: 3))
        #expect(!Pager.isLong(["\u{1b}[1m" + wide + "\u{1b}[0m"], columns: 25, rows: 2))
    }

    /// What `show` prints on a terminal of 10 rows, with a pager.
    private func shown(pager: String, _ options: [String] = []) throws -> (
        text: String, status: Int32
    ) {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "stalls.sqlite").path
            try SampleReports.writeStore(at: URL(filePath: path), [SampleReports.report()])
            let terminal = try PseudoTerminal(columns: 100, rows: 10)
            let program = try terminal.start(
                ["show", "latest", "--store", path] + options,
                environment: [
                    "TERM": "xterm", "PATH": "/usr/bin:/bin", "STALLWATCH_PAGER": pager,
                    "HOME": directory.path, "TZ": "UTC",
                ])
            let text = terminal.readAll(of: program)
            return (text, program.terminationStatus)
        }
    }

    @Test func `long text goes through the pager, unless that is turned off or dead`() throws {
        let paged = try shown(pager: "sed 's/^/P /'")
        #expect(paged.status == 0 && paged.text.contains("P Stack 1: "), "\(paged)")
        let off = try shown(pager: "sed 's/^/P /'", ["--no-pager"])
        #expect(off.status == 0 && off.text.contains("Stack 1: ") && !off.text.contains("P Stack"))
        // It does not exist, ends at once, reads nothing, or dies.
        let missing = try shown(pager: "/no/such/pager")
        #expect(missing.status == 0 && missing.text.contains("Stack 1: "), "\(missing)")
        for pager in ["true", "exit 3", "head -1", "kill -9 $$"] {
            let said = try shown(pager: pager)
            #expect(said.status == 0, "\(pager): \(said)")
        }
        #expect(try shown(pager: "head -1").text.contains("main stalled for"))
    }
}
