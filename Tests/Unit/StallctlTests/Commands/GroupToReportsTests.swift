import Foundation
import StallAnalysis
import StallModel
import StallQuery
import TestSupport
import Testing

@testable import stallctl

/// From a group to its reports: `list GROUP`, `show GROUP|RANK|latest`, and Markdown for an issue tracker.
extension CommandTests {
    /// A copy of the sample store: three stalls each of sleepInTimer (2 s), fetchSynchronously (1 s), waitForWorker
    /// (800 ms), drawComplexLayout and saveEverything.
    private func withDemo(_ body: (URL) throws -> Void) throws {
        let demo = Repository.root.appending(path: "sample-data/demo.sqlite")
        try withTemporaryDirectory { directory in
            try FileManager.default.copyItem(
                at: demo, to: directory.appending(path: "stalls.sqlite"))
            try body(directory)
        }
    }

    private func listed(_ arguments: [String], in directory: URL) throws -> [[String: Any]] {
        try objects(stallctl(["list", "--json"] + arguments, in: directory).output)
    }

    @Test func `a group's reports are listed, the newest or the longest first`() throws {
        try withDemo { directory in
            let waits = try listed(["waitForWorker"], in: directory)
            #expect(waits.count == 3)
            #expect(
                waits.allSatisfy { ($0["title"] as? String)?.contains("waitForWorker") == true })
            let starts = waits.compactMap { $0["start"] as? String }
            #expect(starts == starts.sorted(by: >))
            let signature = try #require(waits[0]["signature"] as? String)
            #expect(try listed([String(signature.prefix(8))], in: directory).count == 3)

            let longest = try listed(["--sort", "lasted", "--limit", "6"], in: directory)
            let durations = longest.compactMap { $0["duration_ms"] as? Double }
            #expect(durations == durations.sorted(by: >) && durations[5] > 990)
            #expect(try listed(["--min-duration", "1.5s"], in: directory).count == 3)
            #expect(try listed(["sleep*", "--min-duration", "3s"], in: directory).isEmpty)
            #expect(try listed(["--state", "hang"], in: directory).isEmpty)
            #expect(try listed(["--state", "ended"], in: directory).count == 15)

            let unknown = try stallctl(["list", "waitForWorkr"], in: directory)
            #expect(unknown.status == 1)
            #expect(unknown.errors.contains("did you mean 'waitForWorker'?"), "\(unknown.errors)")
        }
    }

    @Test(arguments: GroupKey.allCases)
    func `a group of any key lists the stalls that it counts`(key: GroupKey) throws {
        let demo = Repository.root.appending(path: "sample-data/demo.sqlite").path
        let question = RankingQuestion(store: try StoreOptions.open(path: demo), by: key)
        let ranking = try question.ranking(by: .total, limit: 100)
        #expect(!ranking.groups.isEmpty)
        for group in ranking.groups {
            var listing = ListingQuestion(question, limit: 100)
            listing.exactGroup = (key, group.group.signature)
            let answer = try listing.listing()
            #expect(answer.entries.count == group.count, "\(key) \(group.title)")
        }
    }

    @Test func `a report is shown by its group, its rank or as the latest`() throws {
        try withDemo { directory in
            func id(_ name: String) throws -> String? {
                try objects(stallctl(["show", name, "--json"], in: directory).output).first?["id"]
                    as? String
            }
            let top = try objects(stallctl(["top", "--json"], in: directory).output)
            for group in top {
                #expect(try id("\(group["rank"] as? Int ?? 0)") == group["example"] as? String)
            }
            #expect(try id("fetchSync") == top[1]["example"] as? String)
            #expect(
                try id("latest") == listed(["--limit", "1"], in: directory)[0]["id"] as? String)

            let tooFar = try stallctl(["show", "9"], in: directory)
            #expect(tooFar.status == 1 && tooFar.errors.contains("top has only 5 groups"))
            let several = try stallctl(["show", "measure"], in: directory)
            #expect(several.status == 1 && several.errors.contains("matches 5 groups"))
        }
    }

    @Test func `Markdown has the table and the stack, and names stay text`() throws {
        try withDemo { directory in
            let top = try stallctl(["top", "--markdown"], in: directory).output
            let rows = top.split(separator: "\n").filter { $0.hasPrefix("|") }
            #expect(rows.count == 7)
            #expect(Set(rows.map { $0.count { $0 == "|" } }) == [rows[0].count { $0 == "|" }])
            #expect(rows[2].contains(#"sleepInTimer()  \<- StallLog.measure(\_:\_:)"#))
            let shown = try stallctl(["show", "lock*", "--markdown"], in: directory).output
            #expect(shown.hasPrefix("**main stalled for 800 ms"))
            #expect(shown.contains("\n```text\n") && shown.contains("> #2   waitForWorker()"))
        }
        let escaped = "a|b`c*_<img>[x](y)\n#1 @all".markdown
        #expect(escaped == ##"a\|b\`c\*\_\<img\>\[x\](y)\\n\#1 \@all"##)
        #expect(markdownFence(["a ```` b"]) == ["`````text", "a ```` b", "`````"])
        #expect(try stallctl(["top", "--markdown", "--csv"], in: .temporaryDirectory).status == 64)
    }
}
