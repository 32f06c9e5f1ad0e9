import Foundation
import StallAnalysis
import StallArchive
import StallFormats
import StallIngest
import StallModel
import StallQuery
import TestSupport
import Testing

@testable import stallctl

/// Goal: a call that may block where the app forbids it is counted and named, and is never time lost in a stall; a stall that the
/// app declared as meant is not ranked either.
/// Method: reports made by hand as the agent writes them, through the built program on a store of two stalls, three violations at
/// two places and an expected stall, and on the same store without the latter two.
@Suite struct ViolationTests {
    private static let calling = [
        SampleReports.frame(
            "loadThumbnail(_:)", offset: 0x7310, file: "/src/photos/Thumbs.swift", line: 41),
        SampleReports.frame("closure #1 in Timeline.tick()", offset: 0x5100),
        SampleReports.frame("main", offset: 0x1200),
    ]

    /// As the agent reports it: no threshold, one sample from the caller of the function down.
    private static func violation(
        _ number: UInt64, _ call: String = "usleep", _ cause: CauseClass = .sleep,
        lasting duration: Duration = .microseconds(12), at stack: [Frame] = calling
    ) -> StallReport {
        var report = SampleReports.report(
            number, verdict: .blocking, startingAfter: Int64(number),
            samples: [SampleReports.sample(at: 0, for: 0, stack)])
        (report.cpuTime, report.threshold, report.detectionDelay) = (.zero, .zero, .zero)
        report.duration = duration
        report.samples[0].weight = duration
        report.cause = StallCause(
            cause, confidence: 1, shares: [CauseShare(cause, 1)],
            evidence: [CauseEvidence(EvidenceName.blockingCall.rawValue, call)])
        return report
    }

    private static func expected(_ number: UInt64) -> StallReport {
        var report = SampleReports.report(
            number, verdict: .expected, startingAfter: Int64(number), lasting: 3000)
        report.activity = "migration"
        return report
    }

    private static let stalls = [SampleReports.report(1), SampleReports.report(2, lasting: 600)]
    private static let others = [
        violation(3), violation(4, lasting: .microseconds(40)),
        violation(5, "read", .disk, lasting: .milliseconds(700), at: SampleReports.computing),
        expected(6),
    ]

    /// - Parameter isCentral: A central store has groups and roll-ups.
    private func withStore(
        _ reports: [StallReport] = stalls + others, isCentral: Bool = true,
        _ body: (URL) throws -> Void
    ) throws {
        try withTemporaryDirectory { directory in
            let name = isCentral ? "agent.sqlite" : "stalls.sqlite"
            try SampleReports.writeStore(at: directory.appending(path: name), reports)
            if isCentral {
                let ingest = try Ingest(
                    into: directory.appending(path: "stalls.sqlite").path,
                    grouper: DefaultGrouper())
                _ = try ingest.run([directory.appending(path: name).path])
                try ingest.close()
            }
            try body(directory)
        }
    }

    private func run(_ arguments: [String], in directory: URL) throws -> ProgramResult {
        try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path,
            [arguments[0], "--store", "stalls.sqlite"] + arguments.dropFirst(),
            environment: ["TZ": "UTC", "HOME": directory.path, "PATH": "/usr/bin:/bin"],
            directory: directory)
    }

    private func stallctl(_ arguments: String..., in directory: URL) throws -> String {
        let result = try run(arguments, in: directory)
        #expect(result.status == 0, "\(result.errors)")
        return result.output
    }

    // MARK: Rankings

    @Test(arguments: [false, true])
    func `violations are ranked by place and count`(isCentral: Bool) throws {
        try withStore(isCentral: isCentral) { directory in
            let text = try stallctl("top", "--state", "blocking", in: directory)
            #expect(text.contains(": 3 violations in 2 groups\n"), "\(text)")
            #expect(!text.contains("LOST") && !text.contains("lost") && !text.contains("in all"))
            #expect(!text.contains("watched") && !text.contains("Not ranked"))
            let rows = text.split(separator: "\n").map { $0.split(separator: " ") }
            let first = try #require(rows.first { $0.first == "1" }).joined(separator: " ")
            #expect(first.hasPrefix("1 2 12 µs 40 µs sleep loadThumbnail(_:)"), "\(text)")
            #expect(text.contains("calls usleep") && text.contains("calls read"))
            #expect(text.contains("stallctl list --verdict blocking --store"))

            let byTime = try stallctl(
                "top", "--state", "blocking", "--by", "total", "--json", in: directory)
            let lines = byTime.split(separator: "\n")
            #expect(lines.count == 2 && lines[0].contains("drawComplexLayout"), "\(byTime)")
        }
    }

    @Test func `expected stalls are ranked by their time`() throws {
        try withStore { directory in
            let text = try stallctl("top", "--state", "expected", in: directory)
            #expect(text.contains(": 1 expected stall in 1 group, 3.0 s in all\n"), "\(text)")
            #expect(!text.contains("watched"))
        }
    }

    @Test(arguments: [false, true])
    func `the ranking of stalls is the same, but for what it does not rank`(isCentral: Bool)
        throws
    {
        var texts: [[String]] = []
        for reports in [Self.stalls, Self.stalls + Self.others] {
            try withStore(reports, isCentral: isCentral) { directory in
                texts.append(
                    try stallctl("top", in: directory).split(separator: "\n").map(String.init))
                texts.append(
                    try ["--json", "--csv"].map { try stallctl("top", $0, in: directory) }
                        + stallctl("tree", in: directory).split(separator: "\n").map(String.init)
                        + [
                            try stallctl("trend", "--csv", in: directory),
                            try stallctl("export", "--format", "folded", in: directory),
                        ])
            }
        }
        #expect(texts[1] == texts[3])
        let added = texts[2].filter { !texts[0].contains($0) }
        #expect(
            added == [
                "Not ranked: 3 violations, 1 expected.",
                "      stallctl top --state blocking --store stalls.sqlite",
                "      stallctl top --state expected --store stalls.sqlite",
            ])
        #expect(texts[2].filter { !added.contains($0) } == texts[0])
    }

    @Test func `a store of violations alone has no stalls, and says how to see them`() throws {
        try withStore([Self.violation(3)]) { directory in
            let text = try stallctl("top", in: directory)
            #expect(
                text == """
                    No stalls.  Not ranked: 1 violation.
                    Next: stallctl top --state blocking --store stalls.sqlite

                    """)
            #expect(
                try stallctl("status", in: directory).contains("1 violation; these are not ranked"))
        }
    }

    @Test(arguments: [false, true])
    func `--state selects by verdict as --verdict does`(isCentral: Bool) throws {
        try withStore(isCentral: isCentral) { directory in
            let commands = [
                ["top"], ["top", "--json"], ["top", "--group", "inclusive"], ["list"],
                ["list", "--csv"], ["list", "--sort", "lasted", "--cause", "sleep"],
                ["list", "loadThumbnail"], ["tree"], ["trend"], ["trend", "--json"],
                ["export", "--format", "jsonl"], ["export", "--format", "csv"],
                ["export", "--format", "csv", "--rows", "groups"],
                ["export", "--format", "folded"], ["export", "--format", "folded", "--limit", "9"],
                ["export", "--format", "speedscope"],
            ]
            for command in commands {
                for word in ["blocking", "expected"] where command != ["list", "loadThumbnail"] {
                    let state = try run(command + ["--state", word], in: directory)
                    let verdict = try run(command + ["--verdict", word], in: directory)
                    let both = try run(
                        command + ["--verdict", word, "--state", word.uppercased()], in: directory)
                    #expect(state.status == 0 && !state.output.isEmpty, "\(command) \(word)")
                    #expect(state.output == verdict.output && state.output == both.output)
                }
            }
            let listed = try stallctl("list", "--state", "blocking", "--csv", in: directory)
            #expect(listed.split(whereSeparator: \.isNewline).count == 4)
            #expect(listed.contains(",0.012,ended,blocking,"), "\(listed)")
        }
    }

    @Test(arguments: [false, true])
    func `a state of stalls selects them in rankings`(isCentral: Bool) throws {
        let hang = SampleReports.report(7, state: .hang, startingAfter: 70, lasting: 5000)
        try withStore(Self.stalls + Self.others + [hang], isCentral: isCentral) { directory in
            let hangs = try stallctl("top", "--state", "hang", in: directory)
            #expect(hangs.contains(": 1 stall (1 hang) in 1 group, 5.0 s lost"), "\(hangs)")
            let ended = try stallctl(
                "top", "--state", "ended", "--state", "open", "--json", in: directory)
            #expect(ended.contains(#""count":2"#), "\(ended)")
            let list = try stallctl("list", "--state", "hang", "--json", in: directory)
            #expect(list.split(separator: "\n").count == 1)
            let trend = try stallctl("trend", "--state", "hang", in: directory)
            #expect(trend.contains("1 stall, 5.0 s lost"), "\(trend)")
            let tree = try stallctl("tree", "--state", "hang", in: directory)
            #expect(tree.hasPrefix("1 stall, 5.0 s lost"), "\(tree)")
            let lines = try stallctl(
                "export", "--format", "jsonl", "--state", "hang", in: directory)
            #expect(lines.split(separator: "\n").count == 1)
        }
    }

    @Test(arguments: [
        (
            ["--state", "blocked"],
            "'blocked' is not a state; expected blocking, ended, expected, hang and open."
        ),
        (
            ["--state", "hang", "--state", "blocking"],
            "--state hang and --state blocking cannot be used together: blocking is a verdict."
        ),
        (
            ["--verdict", "stalled", "--state", "blocking"],
            "--state blocking and --verdict stalled: no report can match both."
        ),
    ])
    func `a state that no report can have is refused`(options: [String], message: String) throws {
        try withStore { directory in
            for command in [["top"], ["list"], ["tree"], ["trend"], ["export", "--format", "csv"]] {
                let result = try run(command + options, in: directory)
                #expect(result.status == 64 && result.output.isEmpty)
                #expect(result.errors.contains(message), "\(result.errors)")
            }
        }
    }

    // MARK: Reports

    private func text(_ report: StallReport) -> String {
        ReportView(report: report, stackLimit: 3, terminal: .plain).lines.joined(separator: "\n")
    }

    @Test func `show says which call it was and how long it took`() {
        let text = text(Self.violation(3))
        #expect(text.hasPrefix("main: a violation on 21 Nov"), "\(text)")
        let second = text.split(separator: "\n")[1]
        #expect(
            second
                == "Called usleep, which may block, for 12 µs, where the app forbids it.   sleep, confidence 100 %"
        )
        #expect(text.contains("\nEvidence: blocking call usleep.\n"))
        #expect(text.contains("\nStack 1: 1 sample\n"))
        for words in ["stall", "0.0 ms", "threshold", "detected", "CPU"] {
            #expect(!text.replacing("stallctl", with: "").contains(words), "\(words) in:\n\(text)")
        }
    }

    @Test func `a violation whose call is not recorded has a sentence, too`() {
        var report = Self.violation(3, lasting: .zero)
        report.cause = nil
        #expect(
            text(report).contains(
                "\nCalled a function that may block, for <1 µs, where the app forbids it.\n"))
    }

    @Test func `show says that a stall was declared, and as what`() {
        let text = text(Self.expected(6))
        #expect(text.hasPrefix("main stalled for 3.00 s on "))
        #expect(text.contains("\nThe app declared that it may block here: migration.\n"), "\(text)")
        #expect(!text.contains("While:"))

        var other = Self.expected(6)
        other.cause = StallCause(
            .disk, confidence: 1, shares: [CauseShare(.disk, 1)],
            evidence: [CauseEvidence(EvidenceName.expected.rawValue, "first start")])
        let both = self.text(other)
        #expect(both.contains("\nThe app declared that it may block here: first start.\n"))
        #expect(both.contains("\nWhile: migration\n"))
    }

    @Test(arguments: [
        (Duration.nanoseconds(400), "<1 µs"), (.microseconds(1), "1 µs"),
        (.nanoseconds(12_500), "13 µs"), (.nanoseconds(999_499), "999 µs"),
        (.microseconds(1000), "1.0 ms"), (.milliseconds(412), "412 ms"),
        (.milliseconds(1840), "1.84 s"),
    ])
    func `a call's time is given in microseconds where it is short`(
        duration: Duration, text: String
    ) throws {
        #expect(duration.preciseCall == text)
        let report = Self.violation(3, lasting: duration)
        let listing = SampleReports.listing(of: report)
        let row = ListView(listing: listing, terminal: .plain).lines[1]
        #expect(row.contains("  \(text)  ") && row.contains("  blocking  "), "\(row)")
    }

    @Test func `lines of both verdicts are ingested as they were exported`() throws {
        try withStore { directory in
            let lines = try stallctl("export", "--format", "jsonl", in: directory)
            #expect(lines.contains(#""verdict":"blocking""#) && lines.contains("blocking call"))
            let file = directory.appending(path: "all.jsonl")
            try lines.write(to: file, atomically: true, encoding: .utf8)
            let ingested = try Oracle.run(
                BuiltProgram.directory.appending(path: "stallctl").path,
                ["ingest", "--store", "again.sqlite", file.path],
                environment: ["TZ": "UTC", "HOME": directory.path], directory: directory)
            #expect(ingested.status == 0, "\(ingested.errors)")
            for command in [["top"], ["top", "--state", "blocking"], ["list"]] {
                let texts = try ["stalls.sqlite", "again.sqlite"].map { store in
                    try Oracle.run(
                        BuiltProgram.directory.appending(path: "stallctl").path,
                        command + ["--store", store],
                        environment: ["TZ": "UTC", "HOME": directory.path], directory: directory
                    ).output.replacing(store, with: "store")
                }
                #expect(texts[0] == texts[1], "\(texts)")
                #expect(!texts[0].isEmpty)
            }
        }
    }

    // MARK: Pages and hostile names

    @Test func `a page lists violations in a section of their own`() throws {
        func page(_ reports: [StallReport]) throws -> String {
            var text = ""
            try withStore(reports) { directory in
                let file = directory.appending(path: "page.html")
                _ = try stallctl("report", "-o", file.path, in: directory)
                text = try String(contentsOf: file, encoding: .utf8)
            }
            return text
        }
        #expect(try !page(Self.stalls).contains("iolation"))
        let text = try page(Self.stalls + Self.others)
        let begin = try #require(text.range(of: #"<section id="violations">"#)).lowerBound
        let end = try #require(text[begin...].range(of: "</section>")).lowerBound
        let section = text[begin..<end]
        #expect(section.contains("3 violations in 2 groups: calls that may block"))
        #expect(section.contains(#"<td class="n">2</td><td class="n">12 µs</td>"#), "\(section)")
        #expect(section.contains("<td>sleep</td><td>usleep</td>"))
        #expect(section.contains("stallctl top --state blocking --store stalls.sqlite"))
        // The ranking above is of stalls.
        #expect(text.contains(": 2 stalls in 1 group, 2.4 s lost"))
        #expect(try page([Self.violation(3)]).contains("1 violation in 1 group"))
    }

    @Test(arguments: ["\u{1b}[31mred\u{7}", "a\r\nb\u{202e}c", "<script>alert(1)</script>", ""])
    func `a call's name steers neither a terminal nor a browser`(name: String) throws {
        try withStore([Self.violation(3, name), Self.violation(4, name)]) { directory in
            let id = SampleReports.id(3).description
            for command in [["top", "--state", "blocking"], ["show", id], ["list"], ["why", id]] {
                let text = try run(command, in: directory).output
                #expect(!text.isEmpty)
                #expect(
                    text.unicodeScalars.allSatisfy { $0 == "\n" || !$0.steersTerminal },
                    "\(command)")
            }
            let markdown = try stallctl("top", "--state", "blocking", "--markdown", in: directory)
            #expect(!markdown.contains("<script>"))
            let page = directory.appending(path: "page.html")
            _ = try stallctl("report", "-o", page.path, in: directory)
            let text = try String(contentsOf: page, encoding: .utf8)
            #expect(!text.contains("<script>alert") && !text.contains("\u{1b}"))
        }
    }
}
