import Foundation
import TestSupport
import Testing

/// Goal: tests that never end are named with the lines where they hang, and a suite that ends is not.
/// Method: `scripts/truth-tests --short`: a package of tests below `stallctl run -- swift test`.
@Suite(.serialized) struct HangTruthTests {
    private func lastLine(_ environment: [String: String]) throws -> (status: Int32, line: String) {
        let result = try BuiltProgram(
            "truth-tests", ["--short"],
            environment: environment.merging(["BUILT": BuiltProgram.directory.path]) { $1 },
            in: Repository.root.appending(path: "scripts")
        ).finish()
        let line = result.output.split(separator: "\n").last.map(String.init) ?? ""
        return (result.status, line + (result.status == 0 ? "" : "\n" + result.output))
    }

    @Test func `hung tests are named, and healthy ones are not`() throws {
        let (status, line) = try lastLine([:])
        #expect(status == 0, "\(line)")
        #expect(
            line == "truth tests named=5 of=5 line=3 of=3 suspended=2 of=2 accused=0 of=4",
            "\(line)")
    }

    @Test func `a stream that is not followed is noticed`() throws {
        let (status, line) = try lastLine([
            "SABOTAGE": "1", "PLANTS": "^semaphoreInTask$", "HEALTHY": "0",
        ])
        #expect(status == 1)
        #expect(line.hasPrefix("truth tests named=0 of=1 "), "\(line)")
    }
}
