import Foundation
import StallModel
import TestSupport
import Testing

@testable import stallctl

/// What a new user types first, and the answers.
extension CommandTests {
    @Test func `with no store at all, each path that was tried is named`() throws {
        try withTemporaryDirectory { directory in
            let said = try stallctl(["top"], in: directory)
            #expect(said.status == 1)
            #expect(
                said.errors
                    == "stallctl: there is no store: $STALLCTL_STORE is not set, and none of ./stalls.sqlite, \(directory.path)/.local/state/stallwatch/stalls.sqlite and /var/lib/stallwatch/central.sqlite exists; name one with --store\n"
            )
            // Without HOME the user database has the home directory; never the root directory.
            let homeless = try stallctl(["top"], in: directory, environment: ["HOME": ""])
            #expect(!homeless.errors.contains(" /.local"), "\(homeless.errors)")
        }
    }

    @Test(arguments: [
        ["top", "--limit"], ["list", "--limit"], ["top", "--frames"],
        ["diff", "1", "2", "--limit"],
    ])
    func `a negative number is a number`(words: [String]) throws {
        let said = try stallctl(words + ["-3"])
        #expect(said.status == 64)
        #expect(
            said.errors.contains("\(words.last!) must be 1 or more; it was -3."), "\(said.errors)")
    }

    @Test(arguments: [
        (["top", "--since"], "'-3' is not a time"), (["list", "--until"], "'-3' is not a time"),
        (["list", "--min-duration"], "'-3' is not a duration"),
        (["prune", "--older-than"], "'-3' is not a time"),
        (["prune", "--max-size"], "'-3'"),
    ])
    func `a negative value is named, not missing`(words: [String], message: String) throws {
        let said = try stallctl(words + ["-3"])
        #expect(said.status == 64 && said.errors.contains(message), "\(said.errors)")
        #expect(!said.errors.contains("Missing value"))
    }

    @Test(arguments: [
        ["list", "--limit"], ["list", "--sort", "lasted", "--limit"], ["top", "--limit"],
        ["top", "--frames"], ["tree", "--depth"], ["report", "--limit"],
        ["show", "latest", "--stacks"], ["export", "--format", "csv", "--limit"],
        ["diff", "..2026-01-01", "2026-01-01..", "--limit"],
        ["ingest", "--store", "central", "stalls.sqlite", "--wait"],
    ])
    func `the largest number is a number`(words: [String]) throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            let said = try stallctl(words + ["\(Int.max)"], in: directory)
            #expect(said.status == 0, "\(said.errors)")
        }
    }

    @Test func `an empty value is a value`() throws {
        try withTemporaryDirectory { directory in
            var unnamed = SampleReports.report()
            unnamed.loop = ""
            try SampleReports.writeStore(at: directory.appending(path: "stalls.sqlite"), [unnamed])
            for words in [["--loop="], ["--loop", ""]] {
                let found = try objects(stallctl(["list", "--json"] + words, in: directory).output)
                #expect(found.count == 1)
            }
            #expect(try stallctl(["list", "--loop=main"], in: directory).status == 0)
        }
    }

    @Test func `a device that has no lines is left`() throws {
        try withTemporaryDirectory { directory in
            let said = try stallctl(["ingest", "--store", "c", "/dev/zero"], in: directory)
            #expect(said.status == 1 && said.errors.contains("File too large"), "\(said)")
        }
    }

    @Test func `grouped by cause, only the last column is the cause`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            let top = try stallctl(["top", "--group", "cause"], in: directory).output
            let titles = try #require(top.split(separator: "\n").first { $0.hasPrefix("#") })
            #expect(titles.split(separator: " ").count { $0 == "CAUSE" } == 1, "\(titles)")
        }
    }

    @Test func `the tree's CSV has the rows of its JSON`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            let rows = try objects(stallctl(["tree", "--json"], in: directory).output)
            let lines = try stallctl(["tree", "--csv"], in: directory).output
                .components(separatedBy: "\r\n")
            #expect(
                lines[0] == "node,parent,depth,function,image,class,total_ms,share,count")
            #expect(lines.count == rows.count + 2 && lines.last == "")
            for (row, line) in zip(rows, lines.dropFirst()) {
                let start = "\(row["node"] ?? ""),\(row["parent"] as? Int ?? 0)"
                    .replacing(/,0$/, with: ",")
                #expect(line.hasPrefix(start + ",\(row["depth"] ?? ""),"), "\(line)")
            }
            #expect(try stallctl(["tree", "--csv", "--json"], in: directory).status == 64)
        }
    }

    /// A collector acts on them: a reader's mistake is not the operator's.
    @Test(
        arguments: [
            (["top", "--by", "size"], "usage", 64), (["show", "0193c1e2"], "nothing", 1),
            (["why", "noSuchFunction"], "nothing", 1),
            (["diff", "2.3.0", "9", "--fail-above", "1"], "question", 1),
            (["top", "--store", "missing.sqlite"], "failure", 1),
        ] as [([String], String, Int32)])
    func `an error is a line of JSON for a program that wants one`(
        words: [String], kind: String, status: Int32
    ) throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            let said = try stallctl(words, in: directory, environment: ["STALLCTL_ERRORS": "json"])
            #expect(said.status == status)
            let lines = try objects(said.errors)
            try #require(lines.count == 1, "\(said.errors)")
            #expect(lines[0]["schema"] as? String == "stallctl.error/1")
            #expect(lines[0]["kind"] as? String == kind)
            // The reader of a collector is not shown where its store is.
            let message = try #require(lines[0]["message"] as? String)
            #expect(message.contains("stalls.sqlite") == false && message != "", "\(message)")
            let plain = try stallctl(words, in: directory)
            #expect(plain.status == status && plain.errors.contains(message), "\(plain.errors)")
        }
    }

    @Test func `a mistyped id of a few digits is not guessed at`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            let said = try stallctl(["show", "f"], in: directory)
            #expect(said.status == 1 && said.errors.contains("'stallctl list' prints the ids"))
        }
    }

    @Test func `the summary is printed although the metrics cannot be written`() throws {
        try withTemporaryDirectory { directory in
            try SampleReports.writeStore(
                at: directory.appending(path: "stalls.sqlite"), [SampleReports.report()])
            let said = try stallctl(
                ["ingest", "--store", "central", "stalls.sqlite", "--metrics", "no/such/folder/m"],
                in: directory)
            #expect(said.status == 1 && said.errors.contains("no/such/folder"))
            #expect(said.output.contains("imported 1 new report from 1 file"))
        }
    }
}
