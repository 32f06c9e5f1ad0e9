import Foundation
import StallAnalysis
import StallFormats
import StallModel
import StallQuery
import StallStore
import TestSupport
import Testing

@testable import StallIngest

/// Goal: what `--delete` and `--archive` remove is in the store, or was there and is counted.
/// Method: lines of some machines in many files, in a random mix of imports, prunes and lines of later versions. Each
/// report is in a file that remains, or counted once.
@Suite struct LostLinesTests {
    private struct Steps: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 29
        }
    }

    private static func text(_ time: UnixTime) -> String {
        Date(timeIntervalSince1970: Double(time.microseconds) / 1e6).ISO8601Format()
    }

    private struct Line {
        var store: Int
        var seq: Int
        var day: Int
        var text: String {
            let number = String(format: "%04x%08x", store, seq)
            let start = UnixTime(
                microseconds: (20_454 + Int64(day)) * 86_400_000_000 + 3_600_000_000)
            return
                #"{"schema":"stallctl.report/1","id":"0193\#(String(repeating: "0", count: 16))\#(number)","#
                + #""app":"a","version":"1","host":"h\#(store)","pid":7,"loop":"main","start":"\#(LostLinesTests.text(start))","#
                + #""duration_ms":500,"threshold_ms":250,"state":"ended","samples":[],"store":"\#(String(repeating: "\(store)", count: 32))","#
                + #""seq":\#(seq),"revision":\#(seq)}"#
        }
    }

    private func stallctl(_ arguments: [String], in directory: URL) throws -> ProgramResult {
        try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path, arguments,
            environment: ["TZ": "UTC", "HOME": directory.path], directory: directory)
    }

    private func count(in directory: URL) throws -> Int {
        let top = try stallctl(["top", "--json", "--store", "c"], in: directory)
        return try top.output.split(separator: "\n").reduce(0) { sum, line in
            let row = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return sum + (try #require(row?["count"] as? Int))
        }
    }

    private func write(_ lines: [String], _ name: String, in directory: URL) throws {
        try (lines.joined(separator: "\n") + "\n").write(
            to: directory.appending(path: name), atomically: true, encoding: .utf8)
    }

    @Test func `lines of a machine that was never seen are taken, however old they are`() throws {
        try withTemporaryDirectory { directory in
            let old = (1...3).map { Line(store: 1, seq: $0, day: $0) }
            try write(
                (old + [Line(store: 1, seq: 4, day: 300)]).map(\.text), "a.jsonl", in: directory)
            _ = try stallctl(["ingest", "--store", "c", "a.jsonl"], in: directory)
            let prune = ["prune", "--store", "c", "--older-than", "2026-04-01"]
            #expect(try stallctl(prune, in: directory).output.contains("deleted 3 reports"))
            // Two files: the second one's machine is known.
            for part in [1...3, 4...6] {
                try write(
                    part.map { Line(store: 2, seq: $0, day: $0).text }, "b.jsonl", in: directory)
                let taken = try stallctl(
                    ["ingest", "--store", "c", "--delete", "b.jsonl"], in: directory)
                #expect(taken.output == "c: imported 3 new reports from 1 file\n")
                #expect(taken.status == 0 && taken.errors == "")
            }
            #expect(try count(in: directory) == 10)
            // Pruned lines are counted already, and nothing says so: their file stays.
            let again = try stallctl(
                ["ingest", "--store", "c", "--delete", "a.jsonl"], in: directory)
            #expect(
                again.output
                    == "c: imported 0 new reports from 1 file; left out 3 reports of a time "
                    + "that was pruned\n")
            #expect(
                again.errors
                    == "stallctl: a.jsonl: not deleted: 3 lines of it are not in the store\n")
            #expect(again.status == 1)
            #expect(try count(in: directory) == 10)
            #expect(try stallctl(["check", "--store", "c"], in: directory).status == 0)
        }
    }

    @Test func `a file with lines of a later version stays`() throws {
        try withTemporaryDirectory { directory in
            try write(
                [Line(store: 1, seq: 1, day: 1).text, #"{"schema":"stallctl.report/2"}"#],
                "a.jsonl", in: directory)
            for option in [["--delete"], ["--archive", "."]] {
                let result = try stallctl(
                    ["ingest", "--store", "c"] + option + ["a.jsonl"], in: directory)
                #expect(result.status == 1)
                #expect(result.errors.contains("not deleted: 1 line of it is not in the store"))
                #expect(FileManager.default.fileExists(atPath: directory.path + "/a.jsonl"))
            }
            // A program that knows the version takes it: the file is opened again.
            let later = try stallctl(
                ["ingest", "--store", "c", "--json", "a.jsonl"], in: directory)
            #expect(later.status == 0 && later.output.contains(#""unchanged":0"#))
        }
    }

    /// What the file of a store's lines holds, of every kind.
    private func rows(in directory: URL) throws -> [PortableRow] {
        let agent = directory.appending(path: "agent.sqlite").path
        var writer = RowWriter(seed: 7)
        try writer.write(60, to: agent)
        var lines = try allLines(of: agent).map { String(decoding: $0, as: UTF8.self) }
        // Only a central store that has pruned its watched time writes such a line.
        let exposure = try #require(lines.first { $0.contains("stallctl.exposure/1") })
        lines.append(exposure.replacing("stallctl.exposure/1", with: "stallctl.loop/1"))
        try write(lines, "all.jsonl", in: directory)
        var feed = ReportLines(
            bytes: Array((lines.joined(separator: "\n") + "\n").utf8))
        var rows: [PortableRow] = []
        while let row = try feed.next() { rows.append(row) }
        return rows
    }

    /// Only its own store's lines end a report. One of another program with the same id is not taken, and stays.
    @Test func `a file stays as long as the store has less of its stall`() throws {
        try withTemporaryDirectory { directory in
            let end = Line(store: 1, seq: 1, day: 3).text
            let open = end.replacing(#""state":"ended""#, with: #""state":"open""#)
            let origin = try #require(end.firstRange(of: #","store""#))
            try write([open], "open.jsonl", in: directory)
            try write([end], "end.jsonl", in: directory)
            try write([String(end[..<origin.lowerBound]) + "}"], "other.jsonl", in: directory)
            func ingest(_ name: String) throws -> Bool {
                _ = try stallctl(["ingest", "--store", "c", "--delete", name], in: directory)
                return !FileManager.default.fileExists(atPath: directory.path + "/" + name)
            }
            #expect(try ingest("open.jsonl"))
            #expect(try !ingest("other.jsonl"))
            #expect(try ingest("end.jsonl"))
            #expect(try ingest("other.jsonl"))
            #expect(try count(in: directory) == 1)
        }
    }

    /// Each kind is compared with what is stored: something else deletes it in the same transaction.
    @Test(arguments: [
        "exposure", "loss", "suppression", "image_load", "watched_loop", "location_frame", "report",
    ])
    func `lines of every kind are in the store before their file goes`(table: String) throws {
        try withTemporaryDirectory { directory in
            let rows = try rows(in: directory)
            let ingest = try Ingest(
                into: directory.appending(path: "c").path, grouper: DefaultGrouper())
            let missing = try ingest.write { writer in
                for row in rows { _ = try writer.take(row) }
                #expect(try writer.missingCount(rows) == 0)
                try ingest.file.connection.execute("delete from \(table)")
                return try writer.missingCount(rows)
            }
            try ingest.close()
            #expect(missing > 0 && missing < rows.count)
            let taken = try stallctl(
                ["ingest", "--store", "d", "--delete", "all.jsonl"], in: directory)
            #expect(taken.status == 0 && taken.errors == "", "\(taken)")
            #expect(!FileManager.default.fileExists(atPath: directory.path + "/all.jsonl"))
        }
    }

    @Test(arguments: 1...12 as ClosedRange<UInt64>)
    func `nothing that is removed is lost`(seed: UInt64) throws {
        try withTemporaryDirectory { directory in
            var random = Steps(state: seed)
            var lines = (1...4).flatMap { store in
                (1...30).map {
                    Line(store: store, seq: $0, day: Int.random(in: 0..<200, using: &random))
                }
            }
            lines.shuffle(using: &random)
            var incoming = directory
            incoming.append(path: "in")
            try FileManager.default.createDirectory(at: incoming, withIntermediateDirectories: true)
            for step in 0..<12 {
                let sent = lines.filter { _ in Int.random(in: 0..<8, using: &random) == 0 }.map(
                    \.text)
                let later = Int.random(in: 0..<6, using: &random) == 0
                try write(
                    sent + (later ? [#"{"schema":"stallctl.report/2"}"#] : []), "in/\(step).jsonl",
                    in: directory)
                if step == 11 { try write(lines.map(\.text), "in/all.jsonl", in: directory) }
                _ = try stallctl(["ingest", "--store", "c", "--delete", "in"], in: directory)
                if Int.random(in: 0..<3, using: &random) == 0 {
                    let day = Int64.random(in: 0..<180, using: &random)
                    let time = UnixTime(microseconds: (20_454 + day) * 86_400_000_000)
                    _ = try stallctl(
                        ["prune", "--store", "c", "--older-than", Self.text(time)], in: directory)
                }
                let kept = try FileManager.default.contentsOfDirectory(atPath: incoming.path)
                    .map { try String(contentsOfFile: incoming.path + "/" + $0, encoding: .utf8) }
                    .joined()
                let counted = try count(in: directory)
                #expect(counted <= lines.count, "step \(step)")
                if step == 11 {
                    let keptCount = lines.count { kept.contains($0.text) }
                    #expect(counted + keptCount >= lines.count, "lost")
                }
            }
            #expect(try stallctl(["check", "--store", "c"], in: directory).status == 0)
        }
    }
}
