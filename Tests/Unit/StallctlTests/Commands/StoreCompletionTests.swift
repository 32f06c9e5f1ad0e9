import Foundation
import StallModel
import TestSupport
import Testing

@testable import stallctl

/// Goal: a shell is offered what the store has, quickly or not at all, and never an error.
@Suite struct StoreCompletionTests {
    private let demo = Repository.root.appending(path: "sample-data/demo.sqlite").path

    private func offered(_ completion: StoreCompletion, _ words: String...) throws -> [String] {
        try completion.candidates(in: CompletedLine(["stallctl", "top", "--store", demo] + words))
    }

    @Test func `names, groups and ids are those of the store`() throws {
        #expect(try offered(.app) == ["demo"])
        #expect(try offered(.version) == ["1.0.0"])
        #expect(try offered(.version, "--app", "other").isEmpty)
        #expect(try offered(.loop).contains("main"))
        #expect(try offered(.host) == ["vm"])
        let groups = try offered(.group)
        #expect(groups.first == "sleepInTimer" && groups.count == 5)
        let reports = try offered(.report)
        #expect(reports.first == "01a203e3c36e" && reports.contains("latest"))
        #expect(Set(groups).isSubset(of: reports))
    }

    @Test func `the store is the one that was typed`() {
        #expect(CompletedLine(["stallctl", "--store", "a b.sqlite"]).storePath == "a b.sqlite")
        for word in ["'a b.sqlite'", "\"a b.sqlite\"", "a\\ b.sqlite"] {
            #expect(CompletedLine(["stallctl", "top", "--store", word]).storePath == "a b.sqlite")
        }
        #expect(CompletedLine(["stallctl", "top", "--store=x"]).storePath == "x")
        #expect(
            CompletedLine(["--app", "a", "--app=b", "--app"]).values(of: "--app") == ["a", "b"])
    }

    @Test func `without a store nothing is offered, and nothing is said`() throws {
        let said = try CommandTests().stallctl([
            "---completion", "top", "--", "--app", "3", "0", "stallctl", "top", "--app", "",
        ])
        #expect(said.status == 0 && said.errors.isEmpty, "\(said)")
    }

    @Test func `names that would steer the terminal are left out`() throws {
        try withTemporaryDirectory { directory in
            let path = directory.appending(path: "s.sqlite").path
            for (number, name) in hostileNames.enumerated() where !name.isEmpty {
                let run = SampleReports.run(app: name, number: UInt64(1000 + number))
                try SampleReports.writeStore(
                    at: URL(filePath: path), [SampleReports.report(UInt64(number + 1), run: run)],
                    run: run)
            }
            let apps = try StoreCompletion.app.candidates(
                in: CompletedLine(["top", "--store", path]))
            #expect(apps.contains("plain") && apps.contains("日本 👩‍💻 e\u{301}"))
            #expect(!apps.joined().unicodeScalars.contains { $0.steersTerminal })
        }
    }
}
