import Foundation
import StallAnalysis
import StallFormats
import StallModel
import StallQuery
import Testing

@testable import stallctl

/// Names that have broken tools: each field of each output must preserve all of them.
let hostileNames = [
    "plain", "", " padded ", "comma, \"quote\" and 'tick'", "two\nlines", "cr\r\nlf\rend", "\ttab",
    "=cmd|' /C calc'!A0", "+1", "-[UIView layoutSubviews]", "@objc Foo.bar()", " =1+1", "\u{a0}=1",
    "safe\n=unsafe", "'=already", "＝full width", "\u{1b}[2J\u{07}", "nul\0inside",
    "\u{202e}lanoitcerid-ib",
    "\u{2028}separator", "\u{9b}31m", "日本 👩‍💻 e\u{301}", "back\\slash </script>", "\u{10ffff}",
    "\u{fffd}",
]

/// Goal: CSV that other people's parsers read back exactly and spreadsheets never run.
/// Method: Python's csv module as the parser of others; hostile names as data.
@Suite struct CSVTests {
    @Test func `only what needs quotes gets them, and rows end in CR LF`() {
        let row = CSVWriter().row([
            .plain("1"), .text("a,b"), .text("say \"hi\""), .text("plain"), .text(""),
        ])
        #expect(row == "1,\"a,b\",\"say \"\"hi\"\"\",plain,\r\n")
    }

    @Test(arguments: [
        ("=1+1", "'=1+1"), ("-x", "'-x"), (" @x", "' @x"), ("a=b", "a=b"), ("'tis", "''tis"),
        ("a\n-b", "\"a\n'-b\""), ("libUIKit`-[UIView layout]", "libUIKit`-[UIView layout]"),
    ])
    func `cells that a spreadsheet would run are marked as text`(text: String, cell: String) {
        #expect(CSVWriter().row([.text(text)]) == cell + "\r\n")
        #expect(
            !CSVWriter(isRaw: true).row([.text(text)]).contains(text.hasPrefix("'") ? "''" : "'"))
    }

    @Test(.enabled(if: Oracle.hasPython))
    func `another parser reads every hostile name back`() throws {
        let rows = hostileNames.map { CSVWriter(isRaw: true).row([.text($0), .plain("7")]) }
        let script =
            "import csv,json,sys; print(json.dumps(list(csv.reader(open(0, newline='', encoding='utf-8'), strict=True))))"
        let read = try JSONDecoder().decode(
            [[String]].self, from: Data(Oracle.python(script, input: rows.joined()).utf8))
        #expect(read == cells.map { [$0, "7"] })
        #expect(rows.allSatisfy { !$0.utf8.contains(0) })
    }

    @Test(.enabled(if: Oracle.hasPython))
    func `a guarded cell has no line that is a formula, and gives its text back`() throws {
        let rows = hostileNames.map { CSVWriter().row([.text($0)]) }
        let script = """
            import csv, json, re, sys
            cells = [(row or [''])[0] for row in csv.reader(open(0, newline='', encoding='utf-8'), strict=True)]
            for cell in cells:
                for line in re.split('[\\r\\n]', cell):
                    assert not re.match('[ \\u00a0]*[=+@\\t\\uff1d\\uff0b\\uff0d\\uff20-]', line), repr(line)
            print(json.dumps([re.sub("(^|(?<=[\\r\\n]))'", '', cell) for cell in cells]))
            """
        let read = try JSONDecoder().decode(
            [String].self, from: Data(Oracle.python(script, input: rows.joined()).utf8))
        #expect(read == cells)
    }

    /// What a reader gets: a NUL is an escape, since many readers refuse it.
    private var cells: [String] { hostileNames.map { $0.replacing("\0", with: "\\0") } }
}

/// Goal: one JSON object per line, whatever is in it, and safe to print.
/// Method: Python's json module as an independent parser; hostile names as data.
@Suite struct JSONLinesTests {
    struct Row: Encodable {
        var fileName: String
        var totalMs = 1840.25
        @Nullable var cause: String?
    }

    @Test func `keys are in snake case and in order, and absent values are null`() throws {
        let line = try JSONLines.line(Row(fileName: "/usr/lib"))
        #expect(line == #"{"cause":null,"file_name":"/usr/lib","total_ms":1840.25}"# + "\n")
    }

    @Test(.enabled(if: Oracle.hasPython))
    func `another parser reads every hostile name back from one line each`() throws {
        let lines = try hostileNames.map { try JSONLines.line(Row(fileName: $0, cause: $0)) }
        #expect(
            lines.allSatisfy { !$0.dropLast().unicodeScalars.contains(where: \.steersTerminal) })
        let script =
            "import json,sys; print(json.dumps([json.loads(l)['file_name'] for l in sys.stdin]))"
        let read = try JSONDecoder().decode(
            [String].self, from: Data(Oracle.python(script, input: lines.joined()).utf8))
        #expect(read == hostileNames)
    }
}

/// Goal: tables fit the terminal and line up.
/// Method: one small table at several widths.
@Suite struct TableTests {
    let table = Table(
        columns: [.init("#", .trailing), .init("LOST", .trailing), .init("WHERE")],
        rows: [
            [
                .init("1"), .init("1m 58s"),
                .init("sleepInTimer()", additions: ["  <- Timeline.tick()"]),
            ],
            [.init("10"), .init("52 s"), .init("日本\n\u{1b}[0m()", style: .strong)],
        ])

    @Test func `columns line up, and nothing is cut where there is no width`() {
        #expect(
            table.lines(for: .plain) == [
                " #    LOST  WHERE", " 1  1m 58s  sleepInTimer()  <- Timeline.tick()",
                "10    52 s  日本\\n\\u{1B}[0m()",
            ])
    }

    @Test func `what does not fit is left out, then cut in the middle`() {
        var terminal = Terminal.plain
        terminal.columns = 40
        #expect(table.lines(for: terminal)[1] == " 1  1m 58s  sleepInTimer()")
        var long = table
        long.rows = [
            [.init("1"), .init("1 s"), .init(String(repeating: "x", count: 50) + "end()")]
        ]
        #expect(long.lines(for: terminal).allSatisfy { $0.displayWidth <= 40 })
        #expect(long.lines(for: terminal)[1].hasSuffix("end()"))
    }

    @Test func `a caller is shown if it fits, however short, and never in place of another`() {
        func line(_ callers: [String], _ columns: Int?) -> String {
            var terminal = Terminal.plain
            terminal.columns = columns
            let table = Table(
                columns: [.init("#", .trailing), .init("WHERE")],
                rows: [[.init("1"), .init("wait()", additions: callers)]])
            return table.lines(for: terminal)[1]
        }
        #expect(line(["  <- a()"], nil) == "1  wait()  <- a()")
        #expect(line(["  <- a()", "  <- b()"], nil) == "1  wait()  <- a()  <- b()")
        #expect(line(["  <- a()", "  <- b()"], 20) == "1  wait()  <- a()")
        let long = "  <- longNameOfACaller()"
        #expect(line([long, "  <- b()"], 20) == "1  wait()")
    }

    @Test func `the other texts are truncated first where that is asked for`() {
        var terminal = Terminal.plain
        terminal.columns = 60
        var table = Table(
            columns: [.init("FUNCTION"), .init("IMAGE")], flexibleColumn: 0, othersFirst: 16,
            rows: [
                [
                    .init(String(repeating: "f", count: 40)),
                    .init(String(repeating: "i", count: 30)),
                ]
            ])
        #expect(table.naturalWidth == 72)
        #expect(table.lines(for: terminal)[1].hasPrefix(String(repeating: "f", count: 40) + "  "))
        table.othersFirst = nil
        #expect(!table.lines(for: terminal)[1].hasPrefix(String(repeating: "f", count: 40)))
    }

    @Test func `a column with nothing in it is left out`() {
        var table = table
        table.columns.insert(.init("WAIT"), at: 2)
        table.flexibleColumn = 3
        for row in table.rows.indices { table.rows[row].insert(.init(""), at: 2) }
        #expect(table.lines(for: .plain) == self.table.lines(for: .plain))
        table.rows = []
        #expect(table.lines(for: .plain) == [""])
    }

    @Test func `colour adds no columns`() {
        var terminal = Terminal.plain
        terminal.usesColor = true
        let colored = table.lines(for: terminal)
        #expect(colored[2].hasSuffix("\u{1b}[1m日本\\n\\u{1B}[0m()\u{1b}[0m"))
        #expect(colored[1] == "\u{1b}[0m" || colored[1].hasPrefix(" 1  1m 58s  sleepInTimer()"))
    }
}
