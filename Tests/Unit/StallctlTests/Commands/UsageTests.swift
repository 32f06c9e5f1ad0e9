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
                    == "stallctl: there is no store: $STALLCTL_STORE is not set, and neither ./stalls.sqlite nor \(directory.path)/.local/state/stallwatch/stalls.sqlite exists; name one with --store\n"
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
