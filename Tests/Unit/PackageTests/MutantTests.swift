import Foundation
import TestSupport
import Testing

/// Goal: the mutants of the run loop still apply to it, and its tests still catch them.
/// Method: `scripts/mutants --short`: every patch is tried, and two of them are built and played, others in each run. `make mutants` plays
/// all of them. It builds a copy of the run loop in .build/mutants, which the next run finds there.
@Suite struct MutantTests {
    @Test func `every mutant applies, and two of them are caught`() throws {
        let (process, output) = (Process(), Pipe())
        process.executableURL = Repository.root.appending(path: "scripts/mutants")
        process.arguments = ["--short"]
        process.standardOutput = output
        process.standardError = output
        try process.start()
        let text = String(
            decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(text)")
        #expect(text.hasSuffix("mutants caught=2 of=2\n"), "\(text)")
    }
}
