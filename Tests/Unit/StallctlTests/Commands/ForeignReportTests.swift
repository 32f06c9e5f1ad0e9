import Foundation
import TestSupport
import Testing

/// Goal: `ingest` takes the reports of other programs, whatever their files are called, and says what it leaves out. How each
/// format is read is tested by ForeignFormatsTests.
@Suite struct ForeignReportTests {
    @Test func `a directory's reports are known by their content, plain, in gzip and in UTF-16`()
        throws
    {
        try withTemporaryDirectory { directory in
            let reports = directory.appending(path: "in")
            try FileManager.default.createDirectory(at: reports, withIntermediateDirectories: false)
            let text = try String(contentsOf: Self.sample("apple-watchdog.crash"), encoding: .utf8)
            let wide = text.replacing("7A4B1B0F", with: "7A4B1B0E").data(using: .utf16)
            try text.write(to: reports.appending(path: "plain"), atomically: true, encoding: .utf8)
            try #require(wide).write(to: reports.appending(path: "wide.txt"))
            let packed = reports.appending(path: "packed.log")
            try text.replacing("7A4B1B0F", with: "7A4B1B0D")
                .write(to: packed, atomically: true, encoding: .utf8)
            #expect(try Oracle.run("/usr/bin/gzip", [packed.path]).status == 0)
            try "Process: to be written\n".write(
                to: reports.appending(path: "notes.txt"), atomically: true, encoding: .utf8)

            let early = try ingest(["in"], in: directory)
            #expect(early.output.contains("not ready"), "\(early)")
            for name in try FileManager.default.contentsOfDirectory(atPath: reports.path) {
                try FileManager.default.setAttributes(
                    [.modificationDate: Date(timeIntervalSinceNow: -60)],
                    ofItemAtPath: reports.appending(path: name).path)
            }
            let taken = try ingest(["in", "--delete"], in: directory)
            #expect(taken.status == 0, "\(taken.errors)")
            #expect(taken.output == "all.sqlite: imported 3 new reports from 3 files\n")
            let again = try ingest(["in", packed.path + ".gz"], in: directory)
            #expect(again.output.hasPrefix("all.sqlite: imported 0 new reports"))
            let top = try Oracle.stallctl(["top", "--store", "all.sqlite", "--csv"], in: directory)
            #expect(top.output.contains("Library.waitForIndex()"))
        }
    }

    @Test func `standard input may be any format`() throws {
        try withTemporaryDirectory { directory in
            let report = try Data(contentsOf: Self.sample("apple-watchdog.crash"))
            let taken = try Oracle.run(
                BuiltProgram.directory.appending(path: "stallctl").path,
                ["ingest", "--store", "all.sqlite", "-"], input: report, directory: directory)
            #expect(taken.output == "all.sqlite: imported 1 new report from 1 file\n")
        }
    }

    @Test func `a crash is no stall unless it is asked for`() throws {
        try withTemporaryDirectory { directory in
            let crash = Self.sample("apple-macos.crash").path
            let refused = try ingest([crash], in: directory)
            #expect(refused.status == 1)
            #expect(
                refused.errors.hasSuffix(
                    "line 5: the report is a crash, not a stall: --as stall imports it as one\n"))
            #expect(try ingest([crash, "--as", "stall"], in: directory).status == 0)
        }
    }

    @Test func `the options say what a report does not`() throws {
        try withTemporaryDirectory { directory in
            let report = Self.sample("plcrashreporter-live.txt").path
            let words = [
                "--app", "photos", "--app-version", "9", "--assume-duration", "400ms", "--thread",
                "6",
            ]
            #expect(try ingest([report] + words, in: directory).status == 0)
            let list = try Oracle.stallctl(
                ["list", "--store", "all.sqlite", "--json"], in: directory)
            let rows = try Oracle.objects(list.output)
            #expect(rows.count == 2)
            for row in rows {
                #expect(row["app"] as? String == "photos" && row["version"] as? String == "9")
                #expect(row["duration_ms"] as? Double == 400)
            }
            let none = try ingest([report, "--thread", "17"], in: directory, store: "other.sqlite")
            #expect(none.errors.contains("the report has no thread '17'"))
        }
    }

    @Test func `a dry run says what each file is, and makes no store`() throws {
        try withTemporaryDirectory { directory in
            let names = ["apple-watchdog.crash", "plcrashreporter-live.txt"]
            let shown = try ingest(
                names.map { Self.sample($0).path } + ["--dry-run", "--json"], in: directory)
            #expect(shown.status == 0)
            let rows = try Oracle.objects(shown.output)
            #expect(
                rows.map { $0["format"] as? String } == ["Apple crash text", "Apple crash text"])
            #expect(rows.map { $0["stalls"] as? Int } == [1, 2])
            let other = try ingest(["/etc/passwd", "--dry-run"], in: directory)
            #expect(other.status == 1)
            #expect(other.errors.contains("/etc/passwd: plain text"))
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
        }
    }

    @Test func `of packed reports that are cut short, those before the end are taken`() throws {
        try withTemporaryDirectory { directory in
            let cut = directory.appending(path: "cut")
            try FileManager.default.copyItem(at: Self.sample("plcrashreporter-live.txt"), to: cut)
            #expect(try Oracle.run("/usr/bin/gzip", [cut.path]).status == 0)
            let packed = directory.appending(path: "cut.gz")
            try Data(contentsOf: packed).dropLast(8).write(to: packed)
            let taken = try ingest(["cut.gz"], in: directory)
            #expect(taken.status == 1)
            #expect(taken.errors.contains("cut.gz: line"), "\(taken.errors)")
            #expect(taken.output.hasPrefix("all.sqlite: imported 1 new report from 1 file"))
        }
    }

    @Test func `a report that show writes as Apple's text is in the same group when it comes back`()
        throws
    {
        try withTemporaryDirectory { directory in
            let demo = Repository.root.appending(path: "sample-data/demo.sqlite").path
            let words = ["show", "--store", demo, "latest"]
            let text = try Oracle.stallctl(words + ["--format", "apple"], in: directory)
            #expect(text.status == 0, "\(text.errors)")
            let file = directory.appending(path: "stall.crash")
            try text.output.write(to: file, atomically: true, encoding: .utf8)
            #expect(try ingest(["stall.crash"], in: directory).status == 0)
            let before = try Oracle.objects(
                Oracle.stallctl(words + ["--json"], in: directory).output)
            let after = try Oracle.objects(
                Oracle.stallctl(
                    ["show", "--store", "all.sqlite", "latest", "--json"], in: directory
                )
                .output)
            // The text has no cause, which is a part of the signature.
            #expect(before[0]["frames"] as? [String] == after[0]["frames"] as? [String])
            #expect(before[0]["family"] as? String == after[0]["family"] as? String)
            for key in ["start", "duration_ms", "pid", "build_id"] {
                #expect("\(before[0][key] ?? "")" == "\(after[0][key] ?? "")", "\(key)")
            }
        }
    }

    @Test func `folded stacks that export writes are samples of a profile`() throws {
        try withTemporaryDirectory { directory in
            let demo = Repository.root.appending(path: "sample-data/demo.sqlite").path
            let words = ["export", "--store", demo, "--format", "folded", "-o", "stacks"]
            #expect(try Oracle.stallctl(words, in: directory).status == 0)
            let shown = try ingest(["stacks", "--dry-run", "--json"], in: directory)
            let row = try #require(Oracle.objects(shown.output).first)
            #expect(row["format"] as? String == "folded stacks" && row["stalls"] as? Int == 0)
            #expect(row["others"] as? Int ?? 0 > 0)
        }
    }

    /// The names in its stacks are all that many formats have: they must not be the kernel's, nor the system's.
    @Test(arguments: [
        "gdb-threads.txt", "gdb-full.txt", "gdb-swift.txt", "eu-stack-plain.txt",
        "folded-commands.folded",
        "folded-threads.folded", "perf-runs.txt", "profile-recorder.folded", "metrickit-hang.json",
        "swift-backtrace-deep.txt", "apple-watchdog.crash", "sentry-hang.json", "pprof-go.pb",
    ]) func `a report of names has a frame of the app's`(name: String) throws {
        try withTemporaryDirectory { directory in
            #expect(
                try ingest([Self.sample(name).path, "--as", "stall"], in: directory).status <= 1)
            let top = try Oracle.stallctl(
                ["top", "--store", "all.sqlite", "--json"], in: directory)
            let groups = try Oracle.objects(top.output).filter { $0["without_app_frame"] != nil }
            #expect(!groups.isEmpty, "\(top)")
            for group in groups {
                #expect(group["without_app_frame"] as? Bool == false, "\(group)")
            }
        }
    }

    private static func sample(_ name: String) -> URL {
        Repository.root.appending(path: "sample-data/formats/" + name)
    }

    private func ingest(
        _ words: [String], in directory: URL, store: String = "all.sqlite"
    ) throws -> ProgramResult {
        try Oracle.stallctl(["ingest", "--store", store] + words, in: directory)
    }
}
