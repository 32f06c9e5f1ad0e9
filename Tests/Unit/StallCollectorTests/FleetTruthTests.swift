import Foundation
import TestSupport
import Testing

/// Goal: what a dozen hosts push arrives once, whatever happens to the collector and the network.
/// Method: `scripts/truth-fleet --short`, which plays it in a minute; skipped where `make collector` has not built it.
/// `make truth-fleet` plays all of it.
@Suite struct FleetTruthTests {
    @Test func `nothing is lost and nothing is stored twice`() throws {
        let (process, output) = (Process(), Pipe())
        process.executableURL = Repository.root.appending(path: "scripts/truth-fleet")
        process.arguments = ["--short"]
        process.standardOutput = output
        process.standardError = output
        try process.start()
        let text = String(
            decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(text)")
        let last = text.split(separator: "\n").last ?? ""
        #expect(
            last.hasPrefix("skipped: ")
                || last.contains(
                    /^truth fleet reports=\d+ lost=0 double=0 differing_rows=0 exposure_difference=0$/
                ),
            "\(text)")
    }
}
