import Foundation
import StallModel
import StallArchive
import StallQuery
import StallStore
import TestSupport
import Testing

/// Goal: ingest as a job: what it imports, what it prints, and what it leaves behind.
/// Method: the built program on small stores and JSONL files, in a directory of its own.
@Suite struct IngestCommandTests {
    func stallctl(
        _ arguments: [String], in directory: URL, input: String = ""
    ) throws -> ProgramResult {
        try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path, arguments,
            input: Data(input.utf8), environment: ["TZ": "UTC", "HOME": directory.path],
            directory: directory)
    }

    func writeStore(_ name: String, in directory: URL, _ numbers: ClosedRange<Int>) throws {
        let store = try AgentStore(
            path: directory.appending(path: name).path, run: SampleReports.run())
        for number in numbers {
            let report = SampleReports.report(UInt64(number), startingAfter: Int64(number))
            try store.record(report, images: [])
            let frames = report.samples.flatMap { zip($0.locations, $0.frames) }
            try store.symbolize(Dictionary(frames.map { ($0, [$1]) }) { first, _ in first })
        }
        try store.close()
    }

    /// A central store, and jobs of users of whom one has rules of grouping.
    @Test func `jobs with different rules do not regroup a store in turns`() throws {
        try withTemporaryDirectory { directory in
            try writeStore("a.sqlite", in: directory, 1...3)
            let rules = directory.appending(path: "mine.rules")
            try Data("skip function waitForWorker*\n".utf8).write(to: rules)
            func title() throws -> String {
                let top = try stallctl(
                    ["export", "--format", "csv", "--rows", "groups", "--store", "c.sqlite"],
                    in: directory)
                return top.output
            }
            let ingest = ["ingest", "--store", "c.sqlite", "a.sqlite"]
            let first = try stallctl(ingest, in: directory)
            #expect(first.status == 0 && first.errors == "")
            let before = try title()
            #expect(before.contains("waitForWorker"))
            let second = try stallctl(ingest + ["--rules", "mine.rules"], in: directory)
            #expect(second.status == 0)
            #expect(
                second.errors
                    == "stallctl: c.sqlite: grouped by the built-in rules; mine.rules is not used: 'stallctl regroup --store c.sqlite --rules mine.rules' applies it\n"
            )
            #expect(try title() == before)
            // Only this changes them, also for the job that has no rules.
            let regroup = ["regroup", "--store", "c.sqlite", "--rules", "mine.rules"]
            #expect(try stallctl(regroup, in: directory).output.contains("3 reports moved"))
            let known = try stallctl(ingest + ["--rules", "mine.rules"], in: directory)
            #expect(known.status == 0 && known.errors == "")
            let own = try title()
            #expect(own != before)
            let without = try stallctl(ingest, in: directory)
            #expect(without.status == 0 && without.errors == "")
            // And a third that has others, which it finds in its configuration directory.
            let configuration = directory.appending(path: ".config/stallwatch")
            try FileManager.default.createDirectory(
                at: configuration, withIntermediateDirectories: true)
            try Data("skip module Other\n".utf8).write(
                to: configuration.appending(path: "stallwatch.rules"))
            let third = try stallctl(ingest, in: directory)
            #expect(
                third.errors.hasPrefix("stallctl: c.sqlite: grouped by the store's own rules; "))
            #expect(third.errors.contains(".config/stallwatch/stallwatch.rules is not used: "))
            #expect(try title() == own)
            let check = try stallctl(["check", "--repair", "--store", "c.sqlite"], in: directory)
            #expect(check.status == 0)
            #expect(try title() == own)
            // The rules themselves stay with an upgrade of the built-in ones.
            let central = directory.appending(path: "c.sqlite").path
            try StoreFile.connectForWriting(path: central, wait: .seconds(5))
                .execute("update grouping set rules_hash = rules_hash + 1")
            let upgraded = try stallctl(ingest, in: directory)
            #expect(upgraded.errors.contains("'stallctl regroup --store c.sqlite --stored-rules'"))
            #expect(
                try stallctl(["regroup", "--store", "c.sqlite", "--stored-rules"], in: directory)
                    .output == "c.sqlite: no report changed its group\n")
            #expect(try title() == own)
            #expect(
                try !stallctl(ingest, in: directory).errors.contains("another version of stallctl"))
        }
    }

    @Test func `what is exported and ingested again is the same`() throws {
        try withTemporaryDirectory { directory in
            try writeStore("a.sqlite", in: directory, 1...3)
            let exported = try stallctl(
                ["export", "--format", "jsonl", "--store", "a.sqlite"], in: directory)
            let taken = try stallctl(
                ["ingest", "--store", "c.sqlite", "-"], in: directory, input: exported.output)
            #expect(taken.status == 0 && taken.errors == "")
            let again = try stallctl(
                ["export", "--format", "jsonl", "--store", "c.sqlite"], in: directory)
            #expect(again.output == exported.output && !again.output.isEmpty)
            // Once more, both ways: nothing new.
            let lines = directory.appending(path: "a.jsonl")
            try exported.output.write(to: lines, atomically: true, encoding: .utf8)
            let both = try stallctl(
                ["ingest", "--store", "c.sqlite", "--json", "a.jsonl"], in: directory)
            #expect(both.output.contains(#""added":0,"cancelled":false,"changed":0"#))
            let check = try stallctl(["check", "--store", "c.sqlite"], in: directory)
            #expect(check.output == "c.sqlite: no problems found\n" && check.status == 0)
        }
    }

    /// Goal: lines carry all that a report has. Method: reports with every kind of value, compared as they come out
    /// of the two stores, to the nanosecond.
    @Test func `a report that went through lines is the report that it was`() throws {
        try withTemporaryDirectory { directory in
            var generator = ReportGenerator(seed: 9)
            let store = try AgentStore(
                path: directory.appending(path: "a.sqlite").path, run: generator.run)
            for _ in 0..<60 {
                let report = generator.report()
                try store.record(report, images: generator.images)
                try store.symbolize(generator.names(of: report))
            }
            try store.close()
            let exported = try stallctl(
                ["export", "--format", "jsonl", "--store", "a.sqlite"], in: directory)
            let taken = try stallctl(
                ["ingest", "--store", "c.sqlite", "-"], in: directory, input: exported.output)
            #expect(taken.status == 0 && taken.errors == "")
            let reports = try ["a.sqlite", "c.sqlite"].map { name in
                let store = try ReportStore.open(path: directory.appending(path: name).path)
                return try store.reports(ReportFilter())
            }
            #expect(reports[0].count == 60)
            for (before, after) in zip(reports[0], reports[1]) {
                #expect(differences(before, after) == [])
            }
            #expect(reports[1].count == 60)
        }
    }

    /// What differs, innermost values only: a whole report fills a screen.
    func differences(_ before: Any, _ after: Any, at place: String = "") -> [String] {
        let (left, right) = (Mirror(reflecting: before), Mirror(reflecting: after))
        guard !left.children.isEmpty, left.children.count == right.children.count else {
            let texts = ("\(before)", "\(after)")
            return texts.0 == texts.1 ? [] : ["\(place): \(texts.0) is \(texts.1)"]
        }
        return zip(left.children, right.children).enumerated().flatMap { index, pair in
            differences(
                pair.0.value, pair.1.value, at: "\(place).\(pair.0.label ?? "\(index)")")
        }
    }

    @Test func `globs are expanded, and imported files are archived`() throws {
        try withTemporaryDirectory { directory in
            try writeStore("a.sqlite", in: directory, 1...2)
            try writeStore("b.sqlite", in: directory, 3...3)
            let archive = directory.appending(path: "done")
            try FileManager.default.createDirectory(at: archive, withIntermediateDirectories: true)
            try "in the way".write(
                to: archive.appending(path: "a.sqlite"), atomically: true, encoding: .utf8)
            let result = try stallctl(
                ["ingest", "--store", "central", "--archive", "done", "[ab].sqlite"], in: directory)
            #expect(result.output == "central: imported 3 new reports from 2 files\n")
            #expect(result.status == 0 && result.errors == "")
            let kept = try FileManager.default.contentsOfDirectory(atPath: archive.path).sorted()
            #expect(kept == ["a.sqlite", "a.sqlite.1", "b.sqlite"])
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
                    == ["central", "central-lock", "done"])
        }
    }

    @Test func `a store that an agent has open stays, and a changed line file as well`() throws {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "a.sqlite").path
            let store = try AgentStore(path: path, run: SampleReports.run())
            try store.record(SampleReports.report(1), images: [])
            let result = try stallctl(
                ["ingest", "--store", "central", "--delete", "a.sqlite"], in: directory)
            #expect(result.output.contains("imported 1 new report"))
            #expect(FileManager.default.fileExists(atPath: path))
            try store.close()
            let later = try stallctl(
                ["ingest", "--store", "central", "--delete", "a.sqlite"], in: directory)
            #expect(later.status == 0 && !FileManager.default.fileExists(atPath: path))
        }
    }

    @Test func `a broken file is reported once, until it changes`() throws {
        try withTemporaryDirectory { directory in
            let bad = directory.appending(path: "bad.sqlite")
            try "SQLite format 3\u{0} and no more".write(
                to: bad, atomically: true, encoding: .utf8)
            try writeStore("good.sqlite", in: directory, 1...1)
            let arguments = ["ingest", "--store", "central", "bad.sqlite", "good.sqlite"]
            let first = try stallctl(arguments, in: directory)
            #expect(first.status == 1 && first.errors.contains("bad.sqlite: "))
            #expect(first.output == "central: imported 1 new report from 1 file; skipped 1 file\n")
            let second = try stallctl(arguments, in: directory)
            #expect(second.status == 0 && second.errors == "")
            #expect(second.output.contains("; 1 file in quarantine"))
            #expect(try stallctl(arguments + ["--retry"], in: directory).status == 1)
            try Data().write(to: bad)
            #expect(try stallctl(arguments, in: directory).errors.contains("an empty file"))
        }
    }

    @Test func `invalid lines are reported with their numbers, and the rest is imported`() throws {
        try withTemporaryDirectory { directory in
            try writeStore("a.sqlite", in: directory, 1...1)
            let good = try stallctl(
                ["export", "--format", "jsonl", "--store", "a.sqlite"], in: directory
            ).output
            let result = try stallctl(
                ["ingest", "--store", "central", "-"], in: directory,
                input: "{\n\(good)nonsense\n")
            #expect(result.status == 1)
            #expect(result.output.contains("imported 1 new report"))
            #expect(
                result.errors == """
                    stallctl: standard input: line 1: is not JSON: no '\"' at byte 2
                    stallctl: standard input: line 3: is not a JSON object

                    """)
        }
    }

    @Test func `metrics go on from run to run`() throws {
        try withTemporaryDirectory { directory in
            try writeStore("a.sqlite", in: directory, 1...2)
            for _ in 0..<2 {
                _ = try stallctl(
                    ["ingest", "--store", "central", "--metrics", "m.prom", "a.sqlite"],
                    in: directory)
                try writeStore("b.sqlite", in: directory, 3...3)
                _ = try stallctl(
                    ["ingest", "--store", "central", "--metrics", "m.prom", "b.sqlite"],
                    in: directory)
            }
            let text = try String(
                contentsOf: directory.appending(path: "m.prom"), encoding: .utf8)
            let samples = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
            #expect(
                samples.contains(
                    #"stallctl_ingest_reports_total{format="store",result="added"} 4"#), "\(text)")
            #expect(samples.contains("stallctl_stall_duration_seconds_count 4"))
            // Each app and version, and the time lost, add up to the same.
            let builds = samples.filter { $0.hasPrefix("stallctl_app_stalls{app=\"") }
            #expect(builds.allSatisfy { $0.contains("\",version=\"") })
            func sum(_ name: String) -> Double {
                samples.filter { $0.hasPrefix(name) }
                    .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }
                    .reduce(0, +)
            }
            #expect(sum("stallctl_app_stalls{") == 4)
            let lost = sum("stallctl_stall_duration_seconds_sum")
            #expect(lost > 0 && abs(sum("stallctl_app_lost_seconds{") - lost) < 1e-6)
            #expect(abs(sum("stallctl_group_lost_seconds{") - lost) < 1e-6)
            #expect(samples.allSatisfy { $0.wholeMatch(of: /[a-z_]+(\{.*\})? [0-9.e+]+/) != nil })
        }
    }

    @Test
    func `a watching ingest imports what comes, and ends on SIGTERM with all of it committed`()
        throws
    {
        try withTemporaryDirectory { directory in
            try writeStore("a.sqlite", in: directory, 1...2)
            let daemon = Process()
            daemon.executableURL = BuiltProgram.directory.appending(path: "stallctl")
            daemon.arguments = [
                "ingest", "--store", "central", "--watch", "--every", "1", "--wait", "0",
                "a.sqlite",
            ]
            daemon.currentDirectoryURL = directory
            let (output, errors) = (Pipe(), Pipe())
            daemon.standardOutput = output
            daemon.standardError = errors
            try daemon.start()
            // It prints what it imported once that is durable.
            let line = output.fileHandleForReading.availableData
            #expect(String(decoding: line, as: UTF8.self).contains("imported 2 new reports"))
            // It survives another job that takes longer than its timeout.
            let lock = open(directory.appending(path: "central-lock").path, O_RDWR)
            #expect(flock(lock, LOCK_EX) == 0)
            let complaint = errors.fileHandleForReading.availableData
            #expect(
                String(decoding: complaint, as: UTF8.self).contains(
                    "locked by another stallctl job"))
            #expect(close(lock) == 0)
            let other = try stallctl(
                ["ingest", "--store", "central", "--wait", "5", "a.sqlite"], in: directory)
            #expect(other.status == 0)
            daemon.terminate()
            daemon.waitUntilExit()
            #expect(daemon.terminationReason == .exit && daemon.terminationStatus == 0)
            let left = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
            #expect(left == ["a.sqlite", "central", "central-lock"])
        }
    }

    /// Goal: a job that waits for a pipe can be ended. Method: a pipe without a writer.
    @Test(arguments: ["-", "pipe"]) func `a job that waits for lines ends on SIGTERM`(
        path: String
    ) throws {
        try withTemporaryDirectory { directory in
            #expect(mkfifo(directory.appending(path: "pipe").path, 0o600) == 0)
            let job = Process()
            job.executableURL = BuiltProgram.directory.appending(path: "stallctl")
            job.arguments = ["ingest", "--store", "central", path]
            job.currentDirectoryURL = directory
            let (input, output) = (Pipe(), Pipe())
            (job.standardInput, job.standardOutput) = (input, output)
            try job.start()
            let lock = directory.appending(path: "central-lock").path
            _ = eventually { FileManager.default.fileExists(atPath: lock) ? true : nil }
            job.terminate()
            let hasEnded = eventually { job.isRunning ? nil : true }
            if hasEnded == nil { kill(job.processIdentifier, SIGKILL) }
            job.waitUntilExit()
            #expect(job.terminationReason == .exit && job.terminationStatus == 0)
            let left = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
            #expect(left == ["central", "central-lock", "pipe"], "the store was closed")
        }
    }

    @Test func `without standard descriptors nothing is written elsewhere, and the job fails`()
        throws
    {
        try withTemporaryDirectory { directory in
            try writeStore("a.sqlite", in: directory, 1...1)
            let program = BuiltProgram.directory.appending(path: "stallctl").path
            func run(_ line: String) throws -> ProgramResult {
                try Oracle.run(
                    "/bin/sh", ["-c", "exec \(program) ingest --store central \(line)"],
                    directory: directory)
            }
            let unread = try run("- <&-")
            #expect(unread.status == 1)
            #expect(unread.errors.contains("standard input: line 0: Bad file descriptor"))
            let untold = try run("a.sqlite >&-")
            #expect(untold.status == 1 && untold.errors.contains("standard output"))
            let lock = directory.appending(path: "central-lock").path
            #expect(try Data(contentsOf: URL(filePath: lock)).isEmpty)
            let check = try stallctl(["check", "--store", "central"], in: directory)
            #expect(check.output == "central: no problems found\n")
        }
    }

    @Test func `a source that is not a regular file is reported once`() throws {
        try withTemporaryDirectory { directory in
            try writeStore("a.sqlite", in: directory, 1...1)
            let folder = directory.appending(path: "folder")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            #expect(mkfifo(folder.path + "/pipe.jsonl", 0o600) == 0)
            // No name that Swift could write.
            var name = Array((folder.path + "/n").utf8) + [0xff] + Array(".sqlite".utf8) + [0]
            let descriptor = name.withUnsafeMutableBytes { bytes in
                open(bytes.baseAddress!.assumingMemoryBound(to: CChar.self), O_CREAT, 0o600)
            }
            #expect(descriptor >= 0 && close(descriptor) == 0)
            try Data([0x1f, 0x8b]).write(to: directory.appending(path: "lines.jsonl.gz"))
            let arguments = [
                "ingest", "--store", "central", "a.sqlite", "folder", "lines.jsonl.gz",
            ]
            let first = try stallctl(arguments, in: directory)
            #expect(first.status == 1)
            #expect(first.output == "central: imported 1 new report from 1 file; skipped 3 files\n")
            #expect(
                first.errors.contains("folder/n\u{fffd}.sqlite: cannot be opened: the file name"))
            #expect(first.errors.contains("folder/pipe.jsonl: not a regular file"))
            #expect(first.errors.contains("lines.jsonl.gz: compressed"))
            let second = try stallctl(arguments, in: directory)
            #expect(second.output.contains("skipped 1 file; 2 files in quarantine"))
            // The list of them lies beside the store, maybe among its sources.
            let all = try stallctl(["ingest", "--store", "central", "."], in: directory)
            #expect(!all.errors.contains("central-quarantine.jsonl"))
        }
    }

    @Test func `what is pruned is gone, and the roll-ups still hold it`() throws {
        try withTemporaryDirectory { directory in
            try writeStore("a.sqlite", in: directory, 1...3)
            _ = try stallctl(["ingest", "--store", "central", "a.sqlite"], in: directory)
            let usage = try stallctl(["prune", "--store", "central"], in: directory)
            #expect(usage.status == 64)
            let result = try stallctl(
                ["prune", "--store", "central", "--older-than", "2100-01-01", "--json"],
                in: directory)
            #expect(result.output.contains(#""deleted":3"#))
            let check = try stallctl(
                ["check", "--store", "central", "--repair"], in: directory)
            #expect(check.status == 0)
            #expect(check.output == "central: no problems found; roll-ups rebuilt\n")
        }
    }

    @Test
    func `a job deletes reports that are too old after import, and does not import them again`()
        throws
    {
        try withTemporaryDirectory { directory in
            try writeStore("a.sqlite", in: directory, 1...3)
            func ingest(_ keep: String) throws -> ProgramResult {
                try stallctl(
                    ["ingest", "--store", "central", "--keep", keep, "a.sqlite"], in: directory)
            }
            #expect(try ingest("soon").status == 64)
            #expect(try ingest("200000d").output == "central: imported 3 new reports from 1 file\n")
            let kept = try ingest("2100-01-01")
            #expect(
                kept.output
                    == "central: imported 0 new reports from 1 file; deleted 3 old reports\n")
            #expect(kept.status == 0 && kept.errors == "")
            #expect(
                try ingest("2100-01-01").output == "central: imported 0 new reports from 1 file\n")
            let top = try stallctl(["top", "--store", "central"], in: directory)
            #expect(top.output.contains("3 stalls"))
            let check = try stallctl(["check", "--store", "central"], in: directory)
            #expect(check.output == "central: no problems found\n")
        }
    }

    /// A job that imports the same lines every minute, and a prune every night.
    @Test func `lines of what was pruned do not count it again`() throws {
        try withTemporaryDirectory { directory in
            try writeStore("a.sqlite", in: directory, 1...3)
            let ingest = ["ingest", "--store", "central", "a.jsonl"]
            func export() throws {
                _ = try stallctl(
                    ["export", "--store", "a.sqlite", "--format", "jsonl", "-o", "a.jsonl"],
                    in: directory)
            }
            try export()
            #expect(try stallctl(ingest, in: directory).output.contains("imported 3 new reports"))
            func says() throws -> [String] {
                try [["top"], ["trend", "--by", "day"], ["diff", "2.3.0", "2.3.0"]].map { words in
                    let said = try stallctl(words + ["--store", "central"], in: directory)
                    #expect(said.status == 0 && said.errors == "")
                    // Lock holders and hosts are only in reports, and quantiles and intervals from roll-ups are within
                    // a bucket; the number of stalls and the time lost are the same.
                    return said.output.matches(of: /[0-9]+ stalls[^,(]*, [0-9.ms h]+ lost/)
                        .map { String($0.output) }.joined(separator: "; ")
                }
            }
            let before = try says()
            #expect(before.allSatisfy { $0.contains("3 stalls") })
            _ = try stallctl(
                ["prune", "--store", "central", "--older-than", "2100-01-01"], in: directory)
            #expect(try stallctl(ingest, in: directory).output.contains("imported 0 new reports"))
            #expect(
                try says() == before, "of what was pruned the roll-ups tell, however little it is")
            try writeStore("a.sqlite", in: directory, 4...5)
            try export()
            #expect(try stallctl(ingest, in: directory).output.contains("imported 2 new reports"))
            let check = try stallctl(["check", "--store", "central"], in: directory)
            #expect(check.output == "central: no problems found\n")
        }
    }

    /// An open one as well: its origin shows whether its loop's watched time is known.
    @Test func `a line without its origin makes room for its store's report`() throws {
        try withTemporaryDirectory { directory in
            var open = SampleReports.report(1)
            open.state = .open
            try SampleReports.writeStore(
                at: directory.appending(path: "a.sqlite"), [open, SampleReports.report(2)],
                run: open.run)
            let export = ["export", "--format", "jsonl", "--store"]
            let lines = try stallctl(export + ["a.sqlite"], in: directory).output
            #expect(lines.contains(#""state":"open""#))
            let bare = lines.replacing(/,"(seq|revision)":[0-9]+/, with: "")
                .replacing(/,"store":"[0-9a-f]+"/, with: "")
            try Data(bare.utf8).write(to: directory.appending(path: "bare.jsonl"))
            for file in ["bare.jsonl", "a.sqlite", "bare.jsonl"] {
                _ = try stallctl(["ingest", "--store", "c", file], in: directory)
            }
            let kept = try stallctl(export + ["c"], in: directory).output.split(separator: "\n")
            #expect(kept.count == 2 && kept.allSatisfy { $0.contains(#""store":""#) })
        }
    }

    /// A report is its id: the same one under another source, or under none, counts once; different versions are kept.
    @Test func `a report that comes under two sources counts once`() throws {
        try withTemporaryDirectory { directory in
            try writeStore("a.sqlite", in: directory, 1...3)
            let lines = try stallctl(
                ["export", "--store", "a.sqlite", "--format", "jsonl"], in: directory
            ).output
            func write(_ name: String, _ change: (String) -> String) throws {
                try Data(change(lines).utf8).write(to: directory.appending(path: name))
            }
            try write("bare.jsonl") {
                $0.replacing(/,"(seq|revision)":[0-9]+/, with: "")
                    .replacing(/,"store":"[0-9a-f]+"/, with: "")
            }
            let other = String(repeating: "5a", count: 16)
            try write("copy.jsonl") {
                $0.replacing(/"store":"[0-9a-f]+"/, with: "\"store\":\"\(other)\"")
            }
            func count(_ store: String, _ files: [String]) throws -> String {
                for file in files {
                    _ = try stallctl(["ingest", "--store", store, file], in: directory)
                }
                let check = try stallctl(["check", "--store", store], in: directory)
                #expect(check.output.hasSuffix(": no problems found\n"), "\(check.output)")
                let top = try stallctl(["top", "--store", store], in: directory).output
                return String(top.firstMatch(of: /[0-9]+ stalls?/)?.output ?? "none")
            }
            let orders = [
                ["bare.jsonl", "a.sqlite", "bare.jsonl"], ["a.sqlite", "bare.jsonl"],
                ["copy.jsonl", "a.sqlite", "copy.jsonl"], ["a.sqlite", "copy.jsonl", "bare.jsonl"],
            ]
            for (number, order) in orders.enumerated() {
                #expect(try count("c\(number)", order) == "3 stalls", "\(order)")
            }
            // Different content with the same id: both are kept, and shown.
            try write("differs.jsonl") {
                $0.replacing(/"store":"[0-9a-f]+"/, with: "\"store\":\"\(other)\"")
                    .replacing(/"duration_ms":[0-9.]+/, with: "\"duration_ms\":4321")
            }
            #expect(try count("c0", ["differs.jsonl"]) == "6 stalls")
            let id = try #require(lines.firstMatch(of: /"id":"([0-9a-f]{32})"/)?.output.1)
            let shown = try stallctl(["show", String(id), "--store", "c0"], in: directory)
            #expect(shown.status == 0 && shown.output.contains("Report 1 of 2 with this id"))
            #expect(shown.output.contains("4.32 s"))
        }
    }
}
