import Foundation
import TestSupport
import Testing

/// Goal: the comparison of `diff` calls noise significant seldom, and its intervals hold the truth.
/// Method: `make truth-diff`'s program, a few pairs of eight cases; bars are lower than its own, since 30 pairs are
/// few.
@Suite struct DiffTruthTests {
    private func result(_ environment: [String: String]) throws -> [Double] {
        let program = try BuiltProgram("diff-truth", ["30", "short"], environment: environment)
            .finish()
        try #require(program.status == 0, "\(program.errors)")
        let line = program.output.split(separator: "\n").last.map(String.init) ?? ""
        let match = try #require(
            line.wholeMatch(
                of:
                    /truth diff cases=8 false_alarms=([\d.]+) coverage=([\d.]+) power_2x=([\d.]+) gate_false=([\d.]+)/
            ), "\(program.output)")
        return [match.1, match.2, match.3, match.4].map { Double($0)! }
    }

    @Test func `noise is seldom significant`() throws {
        let found = try result([:])
        #expect(found[0] <= 17 && found[1] >= 80 && found[2] > 2 && found[3] <= 17, "\(found)")
    }

    @Test func `the rule of before is noticed`() throws {
        let found = try result(["SABOTAGE": "1"])
        #expect(found[0] > 40 && found[1] < 70, "\(found)")
    }

    /// The code that is measured is that of `stallctl diff`, on an agent's store and a central one.
    @Test(arguments: [[], ["--sabotage"]])
    func `stores of the same pairs are judged alike`(sabotage: [String]) throws {
        try withTemporaryDirectory { directory in
            let pairs = try BuiltProgram("diff-truth", ["sample"]).finish()
            try #require(pairs.status == 0, "\(pairs.errors)")
            let sample = directory.appending(path: "pairs.jsonl")
            let lines = pairs.output.split(separator: "\n")
            #expect(lines.count > 50)
            try lines.prefix(8).joined(separator: "\n").write(
                to: sample, atomically: true, encoding: .utf8)
            let program = try BuiltProgram(
                "diff_through_stores.py",
                [
                    BuiltProgram.directory.appending(path: "stallctl").path,
                    Repository.root.appending(path: "migrations").path, sample.path,
                ] + sabotage,
                in: Repository.root.appending(path: "Tests/Truth/TotalsTruth"))
            let (status, output, errors) = program.finish()
            let line = output.split(separator: "\n").last.map(String.init) ?? ""
            let match = try #require(
                line.wholeMatch(
                    of: /through stallctl diff pairs=8 verdicts=(\d+) differing=(\d+)/),
                "\(output) \(errors)")
            #expect((match.2 == "0") == sabotage.isEmpty, "\(output)")
            #expect((status == 0) == sabotage.isEmpty)
            #expect(Int(match.1)! >= 16)
        }
    }
}
