import ArgumentParser
import Foundation
import StallFormats
import StallModel
import TestSupport
import Testing

@testable import StallStore
@testable import stallctl

/// Goal: the command as people and scripts meet it: its output, its one line about bad input, its
/// exit codes.
/// Method: the built program on stores that this test writes as an agent does.
@Suite struct CommandTests {
    /// Runs stallctl in an empty environment, in UTC.
    func stallctl(
        _ arguments: [String], in directory: URL? = nil, environment: [String: String] = [:]
    ) throws -> ProgramResult {
        let base = [
            "TZ": "UTC", "HOME": directory?.path ?? "/nonexistent", "PATH": "/usr/bin:/bin",
        ]
        return try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path, arguments,
            environment: base.merging(environment) { $1 }, directory: directory)
    }

    // MARK: answers

    @Test func `top, list, show, export and status agree on one store`() throws {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "stalls.sqlite")
            let starved = SampleReports.report(3, verdict: .starved, startingAfter: 20)
            try SampleReports.writeStore(
                at: path,
                [SampleReports.report(1), SampleReports.report(2, startingAfter: 10), starved])
            let top = try stallctl(["top", "--json"], in: directory)
            #expect(top.status == 0 && top.errors == "")
            let group = try firstObject(top.output)
            #expect(group["count"] as? Int == 2)
            #expect(group["total_ms"] as? Double == 3680)
            #expect((group["frames"] as? [String])?.first?.hasPrefix("waitForWorker") == true)

            let list = try objects(stallctl(["list", "--json"], in: directory).output)
            #expect(
                list.map { $0["id"] as? String }
                    == [3, 2, 1].map { SampleReports.id($0).description })
            let show = try firstObject(
                stallctl(["show", "01aa5f320001", "--json"], in: directory).output)
            #expect(show["signature"] as? String == group["signature"] as? String)
            let samples = try #require(show["samples"] as? [[String: Any]])
            let stack = try #require(samples[1]["stack"] as? [[String: Any]])
            #expect(stack[2]["address"] as? String == "0x550000004d12")
            #expect(
                stack.map { $0["function"] as? String } == SampleReports.waiting.map(\.function))

            let array = try JSONSerialization.jsonObject(
                with: Data(stallctl(["export", "--format", "json"], in: directory).output.utf8))
            #expect((array as? [[String: Any]])?.count == 3)
            let status = try firstObject(stallctl(["status", "--json"], in: directory).output)
            #expect(status["report_count"] as? Int == 3)
            #expect((status["verdicts"] as? [String: Int]) == ["stalled": 2, "starved": 1])
        }
    }

    @Test func `the same commands speak to people`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"),
                [SampleReports.report(1), SampleReports.report(2, startingAfter: 10)])
            let commands = [
                ["top"], ["list"], ["show", "01aa5f320002"], ["top", "--csv"],
                ["export", "--format", "csv"], ["export", "--format", "folded"],
                ["export", "--format", "folded", "--weight", "count"],
            ]
            let text = try commands.map { arguments in
                let result = try stallctl(arguments, in: directory)
                #expect(result.status == 0 && result.errors == "")
                return "$ stallctl \(arguments.joined(separator: " "))\n" + result.output + "\n"
            }
            try expectSnapshot(text.joined(), "walk")
        }
    }

    @Test func `tree, diff and trend speak of the same stalls as top`() throws {
        try withTemporaryDirectory { directory in
            var reports = (1...12).map { (number: Int) in
                SampleReports.report(
                    UInt64(number), startingAfter: Int64(number) * 7200, lasting: 500 + number * 10)
            }
            reports.append(SampleReports.report(20, verdict: .starved))
            try SampleReports.writeStore(at: directory.appending(path: "stalls.sqlite"), reports)
            try SampleReports.writeStore(
                at: directory.appending(path: "before.sqlite"),
                [SampleReports.report(31), SampleReports.report(32, startingAfter: 10)])
            let total = try firstObject(stallctl(["top", "--json"], in: directory).output)[
                "total_ms"]
            let tree = try objects(stallctl(["tree", "--json", "--invert"], in: directory).output)
            let roots = tree.filter { $0["depth"] as? Int == 0 }
            #expect(roots.reduce(0) { $0 + ($1["total_ms"] as? Double ?? 0) } == total as? Double)
            #expect(tree.first?["count"] as? Int == 12)
            let trend = try objects(stallctl(["trend", "--json"], in: directory).output)
            #expect(trend.reduce(0) { $0 + ($1["total_ms"] as? Double ?? 0) } == total as? Double)
            let commands = [
                ["tree"], ["tree", "--invert", "--focus", "waitForWorker"],
                ["tree", "--ignore", "waitForWorker", "--min-share", "0"],
                ["diff", "before.sqlite", "stalls.sqlite"],
                ["diff", "2.3.0", "2024-11-21T20:00Z..", "--csv"],
                ["trend", "--by", "hour"], ["trend", "waitForWorker", "--csv"],
            ]
            let text = try commands.map { arguments in
                let result = try stallctl(arguments, in: directory, environment: ["TZ": "UTC"])
                #expect(result.status == 0 && result.errors == "")
                return "$ stallctl \(arguments.joined(separator: " "))\n" + result.output + "\n"
            }
            try expectSnapshot(text.joined(), "walk-analysis")
        }
    }

    @Test func `diff fails when a threshold is crossed, beyond chance`() throws {
        try withTemporaryDirectory { directory in
            for (name, count) in [("few", UInt64(6)), ("many", 40)] {
                for host in UInt64(1)...6 {
                    let run = SampleReports.run(host: "web-\(host)", number: 900 + host)
                    try SampleReports.writeStore(
                        at: directory.appending(path: name + ".sqlite"),
                        (1...count).map {
                            SampleReports.report(
                                $0 + count * 100 + host * 50, run: run, startingAfter: Int64($0))
                        }, run: run)
                }
            }
            let worse = ["diff", "few.sqlite", "many.sqlite", "--fail-above"]
            #expect(try stallctl(worse + ["2"], in: directory).status == 2)
            #expect(try stallctl(worse + ["9"], in: directory).status == 0)
            #expect(try stallctl(worse + ["0.5"], in: directory).status == 64)
            let better = ["diff", "many.sqlite", "few.sqlite", "--fail-above", "1"]
            #expect(try stallctl(better, in: directory).status == 0)
            try SampleReports.writeStore(
                at: directory.appending(path: "one.sqlite"), [SampleReports.report()])
            let untold = try stallctl(
                ["diff", "one.sqlite", "many.sqlite", "--fail-above", "1.2"], in: directory)
            #expect(untold.status == 0)
            #expect(untold.errors == "stallctl: --fail-above cannot tell: 1 host and 6 hosts\n")
            let mistyped = ["diff", "2.3.0", "2.3.1", "--store", "few.sqlite"]
            let typo = try stallctl(mistyped, in: directory)
            #expect(typo.status == 0)
            let sentence =
                "stallctl: few.sqlite: no reports and no watched time for '2.3.1'; "
                + "unknown version '2.3.1': did you mean '2.3.0'? Known: 2.3.0\n"
            #expect(typo.errors == sentence)
            // An unwatched side must not pass.
            for words in [
                mistyped, ["diff", "2.3.1", "2.3.0", "--store", "few.sqlite"],
                ["diff", "..2001-01-01", "2001-01-01..", "--store", "few.sqlite"],
            ] {
                let failing = try stallctl(words + ["--fail-above", "1.2"], in: directory)
                #expect(failing.status == 1 && failing.output == "", "\(words)")
                #expect(failing.errors.contains("no reports and no watched time for"))
            }
        }
    }

    @Test func `rules are found beside the store, and a wrong one is named`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            let rules = directory.appending(path: "stallwatch.rules")
            try Data("skip function waitForWorker*\n".utf8).write(to: rules)
            let group = try firstObject(stallctl(["top", "--json"], in: directory).output)
            #expect((group["frames"] as? [String])?.first == "Timeline.tick()")
            let why = try stallctl(["why", "01aa5f320001"], in: directory).output
            #expect(why.contains("stallwatch.rules:1: function waitForWorker*"))
            try Data("skip waitForWorker\n".utf8).write(to: directory.appending(path: "bad.rules"))
            let bad = try stallctl(["top", "--rules", "bad.rules"], in: directory)
            #expect(bad.status == 1)
            #expect(
                bad.errors
                    == "stallctl: bad.rules:1: expected a selector: image, module, function or kind, not 'waitForWorker'\n"
            )
            let missing = try stallctl(["top", "--rules", "none.rules"], in: directory)
            #expect(
                missing.status == 1
                    && missing.errors.hasPrefix(
                        "stallctl: none.rules: cannot read the grouping rules")
            )
        }
    }

    @Test func `the version is printed, and an option of that name still selects reports`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            let version = try stallctl(["--version"], in: directory)
            #expect(version.status == 0 && version.errors == "")
            #expect(version.output.hasPrefix("stallctl \(stallwatchVersion), store schema "))
            let schema = try firstObject(stallctl(["status", "--json"], in: directory).output)
            #expect(version.output.hasSuffix(" \(schema["schema_version"] ?? 0)\n"))
            for (wanted, count) in ["2.3.0": 1, "9.9.9": 0] {
                let list = try stallctl(["list", "--json", "--version", wanted], in: directory)
                #expect(list.status == 0 && list.output.split(separator: "\n").count == count)
            }
            #expect(try stallctl(["list", "--version"], in: directory).status == 64)
        }
    }

    @Test func `a file that is not a store is described`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            let outputs = [
                (["show", "01aa"], "plain text"), (["top"], "plain text"),
                (["export", "--format", "csv"], "CSV as written by stallctl"),
                (["top", "--csv"], "CSV as written by stallctl"),
                (["export", "--format", "json"], "a JSON array; 'stallctl ingest' needs"),
            ]
            for (words, clause) in outputs {
                let text = try stallctl(words, in: directory).output
                try Data(text.utf8).write(to: directory.appending(path: "out"))
                let taken = try stallctl(["ingest", "--store", "all.sqlite", "out"], in: directory)
                #expect(taken.status == 1, "\(words)")
                #expect(taken.errors.hasPrefix("stallctl: out: \(clause)"))
                #expect(
                    taken.errors.hasSuffix(
                        "; expected a stallwatch store or a file of reports that ingest reads\n"))
                let asked = try stallctl(["top", "--store", "out"], in: directory)
                #expect(asked.errors.hasSuffix("; expected a stallwatch store\n"))
            }
            let lines = try stallctl(["export", "--format", "jsonl", "-o", "out"], in: directory)
            #expect(lines.status == 0)
            let asked = try stallctl(["list", "--store", "out"], in: directory)
            #expect(
                asked.errors.hasPrefix(
                    "stallctl: out: JSON lines; import them with 'stallctl ingest'"))
        }
    }

    /// Goal: what the texts show is what the commands say.
    @Test func `the walk-through is up to date`() throws {
        let result = try Oracle.runScript("walkthrough", ["--check"])
        #expect(result.status == 0, "\(result.output)")
    }

    @Test func `merge writes a rule, and regroup applies it to history`() throws {
        try withTemporaryDirectory { directory in
            var other = SampleReports.waiting
            other[2].function = "waitForReader()"
            other[2].offset += 64
            let sample = SampleReports.sample(at: 125, for: 1840, other)
            try SampleReports.writeStore(
                at: directory.appending(path: "agent.sqlite"),
                [SampleReports.report(1), SampleReports.report(2, samples: [sample])])
            let central = ["--store", "central.sqlite"]
            _ = try stallctl(["ingest", "agent.sqlite"] + central, in: directory)
            #expect(
                try objects(stallctl(["top", "--json"] + central, in: directory).output).count == 2)
            let unclear = try stallctl(
                ["merge", "waitFor", "waitForReader"] + central, in: directory)
            #expect(
                unclear.status == 1 && unclear.errors.contains("'waitFor' matches 2 groups"))
            let merged = try stallctl(
                ["merge", "waitForWorker", "waitForReader", "--into", "waiting"] + central,
                in: directory)
            #expect(merged.status == 0 && merged.output.hasPrefix("merge path "))
            let top = try objects(stallctl(["top", "--json"] + central, in: directory).output)
            #expect(top.map { $0["count"] as? Int } == [2])
            #expect(top[0]["title"] as? String == "lock in waiting")
            let regrouped = try stallctl(["regroup", "--json"] + central, in: directory)
            let moves = try objects(regrouped.output)
            #expect(moves.map { $0["title"] as? String } == ["lock in waiting", "lock in waiting"])
            #expect(Set(moves.compactMap { $0["title_before"] as? String }).count == 2)
            let again = try stallctl(["regroup"] + central, in: directory)
            #expect(again.output == "central.sqlite: no report changed its group\n")
            let agent = try stallctl(["regroup", "--store", "agent.sqlite"], in: directory)
            #expect(agent.status == 1 && agent.errors.contains("expected a central store"))
        }
    }

    /// A rule names its groups exactly, whatever characters they have.
    @Test func `merge of names with line ends, quotes and ? spares a third group`() throws {
        try withTemporaryDirectory { directory in
            let names = [
                "a\nb()", "a\"b()", "a?b()", "axb()", "a\u{2028}b()", "\u{301}b()", "yb()",
            ]
            let reports = names.enumerated().map { number, name in
                var frames = SampleReports.waiting
                frames[2].function = name
                frames[2].offset += UInt64(number) * 16
                frames[3].function = nil
                return SampleReports.report(
                    UInt64(number + 1), startingAfter: Int64(number),
                    samples: [SampleReports.sample(at: 125, for: 1840, frames)])
            }
            try SampleReports.writeStore(at: directory.appending(path: "stalls.sqlite"), reports)
            func groups() throws -> [[String: Any]] {
                try objects(stallctl(["top", "--json"], in: directory).output)
            }
            #expect(try groups().count == names.count)
            func signature(_ number: Int) throws -> String {
                try #require(
                    groups().first { ($0["frames"] as? [String])?.first == names[number] }?[
                        "signature"] as? String)
            }
            let merged = try stallctl(
                ["merge", signature(0), signature(1), signature(2), signature(4), signature(5)]
                    + ["--into", "odd"], in: directory)
            #expect(merged.status == 0, "\(merged)")
            let left = try groups()
            #expect(left.count == 3, "\(left.map { $0["title"] ?? "" })")
            let counts = left.compactMap { $0["count"] as? Int }.sorted()
            #expect(counts == [1, 1, 5])
        }
    }

    @Test func `filters select, and a mistyped one is answered with what there is`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            for arguments in [
                ["--app", "photos"], ["--until", "2027-01-01"], ["--host", "web-2"],
            ] {
                #expect(
                    try !objects(stallctl(["list", "--json"] + arguments, in: directory).output)
                        .isEmpty)
            }
            for arguments in [
                ["--version", "1"], ["--since", "2027-01-01"], ["--loop", "other"],
            ] {
                #expect(try stallctl(["list", "--json"] + arguments, in: directory).output == "")
            }
            let typo = try stallctl(["top", "--app", "phtos"], in: directory)
            #expect(typo.status == 0)
            #expect(
                typo.errors
                    == "stallctl: stalls.sqlite: no report has app 'phtos'; did you mean 'photos'?\n"
            )
        }
    }

    @Test func `hostile names come back whole and never steer the terminal`() throws {
        try withTemporaryDirectory { directory in
            let names = hostileNames.filter { !$0.isEmpty }
            let reports = names.enumerated().map { number, name in
                var frames = SampleReports.waiting
                frames[2].function = name
                frames[2].offset += UInt64(number) * 16
                var report = SampleReports.report(
                    UInt64(number + 1), startingAfter: Int64(number),
                    samples: [SampleReports.sample(at: 125, for: 1840, frames)])
                report.activity = name
                return report
            }
            try SampleReports.writeStore(at: directory.appending(path: "stalls.sqlite"), reports)
            let csv = try stallctl(["export", "--format", "csv", "--csv-raw"], in: directory).output
            let script =
                "import csv,json; print(json.dumps([r['activity'] for r in csv.DictReader(open(0, newline=''))]))"
            if Oracle.hasPython {
                let read = try JSONDecoder().decode(
                    [String].self, from: Data(Oracle.python(script, input: csv).utf8))
                // A NUL is an escape in CSV.
                #expect(read == names.reversed().map { $0.replacing("\0", with: "\\0") })
            }
            for number in names.indices {
                let id = SampleReports.id(UInt64(number + 1)).description
                let json = try firstObject(stallctl(["show", id, "--json"], in: directory).output)
                #expect(json["activity"] as? String == names[number])
                let shown = try stallctl(["show", id], in: directory).output
                #expect(
                    !shown.split(separator: "\n").joined().unicodeScalars.contains {
                        $0.steersTerminal
                    })
            }
        }
    }

    @Test func `an exported file appears complete, or not at all`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            let written = try stallctl(
                ["export", "--format", "jsonl", "-o", "out.jsonl"], in: directory)
            #expect(written.status == 0 && written.output == "")
            let text = try String(
                contentsOf: directory.appending(path: "out.jsonl"), encoding: .utf8)
            #expect(try text == stallctl(["export", "--format", "jsonl"], in: directory).output)

            let failed = try stallctl(
                ["export", "--format", "json", "-o", "no/out.json"], in: directory)
            #expect(failed.status == 1)
            #expect(failed.errors == "stallctl: no/out.json: No such file or directory\n")
            let refused = try stallctl(["export", "--format", "json", "-o", "/"], in: directory)
            #expect(refused.status == 1)
            let left = try FileManager.default.contentsOfDirectory(atPath: directory.path)
            #expect(left.sorted() == ["out.jsonl", "stalls.sqlite"])
        }
    }

    /// Goal: tables fit the window; colour is for terminals that want it.
    /// Method: Python's pty module is the terminal, 100 columns wide.
    @Test(
        .enabled(if: Oracle.hasPython),
        arguments: [
            ([], [:], true), ([], ["NO_COLOR": "1"], false), ([], ["NO_COLOR": ""], true),
            ([], ["TERM": "dumb"], false), (["--color", "never"], [:], false),
            (["--color", "always"], ["NO_COLOR": "1", "TERM": "dumb"], true),
        ] as [([String], [String: String], Bool)])
    func `a terminal gets its width, and color unless disabled`(
        options: [String], environment: [String: String], isColored: Bool
    ) throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            let script = """
                import fcntl, os, pty, struct, sys, termios
                pid, terminal = pty.fork()
                if pid == 0:
                    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 100, 0, 0))
                    os.execv(sys.argv[1], sys.argv[1:])
                while True:
                    try: data = os.read(terminal, 65536)
                    except OSError: break  # how Linux says that the other side is gone
                    if not data: break
                    os.write(1, data)
                sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                """
            let program = BuiltProgram.directory.appending(path: "stallctl").path
            let base = ["TERM": "xterm", "TZ": "UTC", "PATH": "/usr/bin:/bin"]
            let result = try Oracle.run(
                "/usr/bin/env", ["python3", "-c", script, program, "list"] + options,
                environment: base.merging(environment) { $1 }, directory: directory)
            #expect(result.status == 0)
            #expect(result.output.contains("\u{1b}[") == isColored, "\(result)")
            let lines = result.output.replacing(/\u{1b}\[\d*m/, with: "").split(separator: "\r\n")
            #expect(lines.count == 2 && lines.allSatisfy { $0.count <= 100 })
            #expect(lines.last?.contains("…") == true)
        }
    }

    // MARK: ingest

    @Test func `ingest imports what it can, names the rest, and imports nothing twice`() throws {
        try withTemporaryDirectory { directory in
            let stores = directory.appending(path: "stores")
            try FileManager.default.createDirectory(at: stores, withIntermediateDirectories: true)
            try SampleReports.writeStore(
                at: stores.appending(path: "a.sqlite"), [SampleReports.report(1)])
            try SampleReports.writeStore(
                at: stores.appending(path: "b.sqlite"),
                [SampleReports.report(2, run: SampleReports.run(number: 901))],
                run: SampleReports.run(number: 901))
            try Data("not a store".utf8).write(to: stores.appending(path: "foreign.sqlite"))
            let whole = try Data(contentsOf: stores.appending(path: "a.sqlite"))
            try whole.prefix(whole.count / 2).write(to: stores.appending(path: "torn.sqlite"))

            let first = try stallctl(
                ["ingest", "--store", "central.sqlite", "stores"], in: directory)
            #expect(first.status == 1)
            #expect(
                first.output
                    == "central.sqlite: imported 2 new reports from 2 files; skipped 2 files\n"
            )
            let errors = first.errors.split(separator: "\n")
            #expect(errors.count == 2)
            #expect(errors.allSatisfy { $0.hasPrefix("stallctl: stores/") })
            #expect(first.errors.contains("foreign.sqlite") && first.errors.contains("torn.sqlite"))

            let again = try stallctl(
                ["ingest", "--json", "--store", "central.sqlite", "stores/a.sqlite"], in: directory)
            #expect(again.status == 0)
            #expect(try firstObject(again.output)["added"] as? Int == 0)
            let top = try stallctl(["top", "--json", "--store", "central.sqlite"], in: directory)
            #expect(try firstObject(top.output)["count"] as? Int == 2)
        }
    }

    @Test func `without a store of its own, ingest makes one in the state folder`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "a.sqlite"), [SampleReports.report()])
            let ingest = try stallctl(["ingest", "a.sqlite"], in: directory)
            #expect(ingest.status == 0, "\(ingest.errors)")
            #expect(
                try firstObject(stallctl(["status", "--json"], in: directory).output)["role"]
                    as? String == "central")
            let folder = directory.appending(path: ".local/state/stallwatch").path
            let attributes = try FileManager.default.attributesOfItem(atPath: folder)
            #expect(attributes[.posixPermissions] as? Int == 0o700)
        }
    }

    // MARK: bad input

    @Test(arguments: [
        (["top", "--store", "nowhere.sqlite"], "nowhere.sqlite: no such file"),
        (["top"], "there is no store: $STALLCTL_STORE is not set, and none of ./stalls.sqlite, "),
        (
            ["list", "--store", "text.sqlite"],
            "text.sqlite: plain text; expected a stallwatch store"
        ),
        (["show", "00", "--store", "."], ".: not a regular file"),
        (["status", "--store", "empty.sqlite"], "empty.sqlite: an empty file"),
        (
            ["export", "--format", "json", "--store", "newer.sqlite"],
            "newer.sqlite: schema version 99 is newer"
        ),
        (["migrate", "--store", "newer.sqlite"], "newer.sqlite: schema version 99 is newer"),
        (["migrate", "--store", "nowhere.sqlite"], "nowhere.sqlite: no such file"),
        (["ingest", "--store", "missing/c.sqlite", "good.sqlite"], "missing/c.sqlite"),
        (["ingest", "--store", "c.sqlite", "nowhere"], "nowhere: no such file"),
        (["ingest", "--store", "good.sqlite", "good.sqlite"], "good.sqlite: an agent's store"),
        (
            ["show", "ffff", "--store", "good.sqlite"],
            "good.sqlite: no report id begins with ffff; 'stallctl list' prints the ids"
        ),
        (
            ["show", "01aa-5f33-0001", "--store", "good.sqlite"],
            "good.sqlite: no report id begins with 01aa-5f33-0001; did you mean 01aa5f320001?"
        ),
        (["show", "01aa", "--store", "good.sqlite"], "2 report ids begin with 01aa"),
    ])
    func `bad input gets one clear line and exit code 1`(arguments: [String], message: String)
        throws
    {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "good.sqlite"),
                [SampleReports.report(1), SampleReports.report(2)])
            try Data(repeating: 0x61, count: 5000).write(
                to: directory.appending(path: "text.sqlite"))
            try Data().write(to: directory.appending(path: "empty.sqlite"))
            try writeNewerStore(at: directory.appending(path: "newer.sqlite"))
            let result = try stallctl(arguments, in: directory)
            #expect(result.status == 1)
            let lines = result.errors.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.count == 2 && lines[1] == "", "one line: \(result.errors)")
            #expect(
                result.errors.hasPrefix("stallctl: ") && result.errors.contains(message),
                "\(result.errors)")
        }
    }

    @Test(
        arguments: [
            ([], 0), (["--help"], 0), (["help", "top"], 0), (["tpo"], 64),
            (["top", "--by", "size"], 64),
            (["top", "--limit", "0"], 64), (["top", "--since", "yesteryear"], 64),
            (["top", "--csv", "--json"], 64),
            (["show"], 64), (["export"], 64), (["ingest"], 64),
            (["export", "--format", "json", "--rows", "groups"], 64),
            (["list", "--until", "7d", "--since", "2d"], 64), (["diff", "1..2", "3d.."], 64),
        ] as [([String], Int32)])
    func `usage errors are distinguished from failures`(arguments: [String], status: Int32) throws {
        let result = try stallctl(arguments)
        #expect(result.status == status)
        #expect((status == 0) == result.errors.isEmpty)
    }

    @Test(arguments: [("tpo", "top"), ("shwo", "show"), ("exports", "export")])
    func `a mistyped command gets a suggestion`(word: String, meant: String)
        throws
    {
        for words in [[word], ["help", word]] {
            let result = try stallctl(words)
            #expect(result.status == 64)
            #expect(
                result.errors.contains("Unknown command '\(word)'. Did you mean '\(meant)'?"))
        }
    }

    @Test func `a closed pipe ends it quietly; a full disk does not`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            let program = BuiltProgram.directory.appending(path: "stallctl").path
            for command in ["top", "list --json", "export --format json", "show 01aa", "--help"] {
                let script = "set -o pipefail; '\(program)' \(command) | true"
                let closed = try Oracle.run("/bin/bash", ["-c", script], directory: directory)
                #expect(closed.status == 0 && closed.errors == "", "\(command): \(closed)")
            }
            let full = try Oracle.run(
                "/bin/sh", ["-c", "'\(program)' top > /dev/full"], directory: directory)
            #expect(full.status == 1)
            #expect(full.errors == "stallctl: standard output: No space left on device\n")
        }
    }

    @Test func `export writes through a pipe, which stays one`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            let program = BuiltProgram.directory.appending(path: "stallctl").path
            let script = """
                mkfifo pipe; cat pipe > read & '\(program)' export --format csv -o pipe; code=$?; wait
                '\(program)' export --format csv | cmp - read && test -p pipe && exit $code
                """
            let run = try Oracle.run("/bin/sh", ["-c", script], directory: directory)
            #expect(run.status == 0 && run.errors == "", "\(run)")
            // The reader has ended.
            let gone = try Oracle.run(
                "/bin/sh", ["-c", "true < pipe & '\(program)' export --format csv -o pipe"],
                directory: directory)
            #expect(gone.status == 0 && gone.errors == "", "\(gone)")
        }
    }

    // MARK: the store that is meant, and help

    @Test func `the store is the option, $STALLCTL_STORE, or the nearest that exists`() {
        let all = ["STALLCTL_STORE": "v", "XDG_STATE_HOME": "/state", "HOME": "/home/me"]
        var environment = all
        func path(_ option: String?, _ exists: Bool, and others: [String] = []) -> String {
            StoreOptions.path(option: option, environment: environment) {
                $0 == "stalls.sqlite" && exists || others.contains($0)
            }
        }
        #expect(path("o", true) == "o")
        #expect(path(nil, true) == "v")
        environment["STALLCTL_STORE"] = ""
        #expect(path(nil, true) == "stalls.sqlite")
        #expect(
            StoreOptions.path(option: nil, environment: environment, setting: "/s") { _ in true }
                == "/s")
        #expect(path(nil, false) == "/state/stallwatch/stalls.sqlite")
        let machine = "/var/lib/stallwatch/central.sqlite"
        #expect(path(nil, false, and: [machine]) == machine)
        #expect(path(nil, true, and: [machine]) == "stalls.sqlite")
        let both = [machine, "/state/stallwatch/stalls.sqlite"]
        #expect(path(nil, false, and: both) == "/state/stallwatch/stalls.sqlite")
        environment["XDG_STATE_HOME"] = "relative"
        #expect(path(nil, false) == "/home/me/.local/state/stallwatch/stalls.sqlite")
    }

    #if Fleet
    @Test func `help is written for people`() throws {
        let pages =
            [Stallctl.helpMessage(columns: 80)]
            + Stallctl.configuration.subcommands.map { Stallctl.helpMessage(for: $0, columns: 80) }
        try expectSnapshot(pages.joined(separator: "\n\n--------\n\n"), "help")
    }
    #endif

    private func firstObject(_ lines: String) throws -> [String: Any] {
        try #require(try objects(lines).first)
    }

    func objects(_ lines: String) throws -> [[String: Any]] {
        try lines.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
    }

    /// A store that claims to have 99 migrations.
    private func writeNewerStore(at url: URL) throws {
        try SampleReports.writeStore(at: url, [SampleReports.report()])
        let file = try FileHandle(forUpdating: url)
        // The header's user_version; SQLite's file format, section 1.3.
        try file.seek(toOffset: 60)
        try file.write(contentsOf: Data([0, 0, 0, 99]))
        try file.close()
    }
}
