import Foundation
import TestSupport
import Testing

/// Goal: stalls of every nature have the right function, cause and holder, from the thread that stalls to what stallctl says.
/// Method: `make truth-sites`' program with every fifth site, not optimized, held against what the sites noted. Bars are lower than
/// its own, since one mistake of thirty is three in a hundred, and a busy machine starves.
@Suite struct SiteTruthTests {
    @Test func `stalls at planted sites are distinguished`() throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "sites.sqlite").path
            let sites = try BuiltProgram("site-truth", [store, "5"]).finish()
            try #require(sites.status == 0, "\(sites.errors)")
            let package = Repository.root
            let reports = try BuiltProgram(
                "stallctl",
                [
                    "export", "--store", store, "--format", "jsonl", "--rules",
                    package.appending(path: "Tests/Truth/SiteTruth/sites.rules").path,
                ]
            ).finish()
            let (hits, lines) = (directory.path + "/hits", directory.path + "/reports")
            try sites.output.write(toFile: hits, atomically: true, encoding: .utf8)
            try reports.output.write(toFile: lines, atomically: true, encoding: .utf8)
            let verdict = try output(of: [
                "python3", package.appending(path: "scripts/truth_sites.py").path,
                "debug=\(hits),\(lines)",
            ])
            let result = try #require(
                verdict.firstMatch(
                    of:
                        /truth sites once=(\d+) of=(\d+) function=(\d+) of=\d+ cause=(\d+) of=\d+ holder=(\d+) of=/
                ), "\(verdict)")
            let count = Int(result.2)!
            #expect(count >= 30, "\(verdict)")
            for right in [result.1, result.3, result.4, result.5] {
                #expect(Int(right)! * 10 >= count * 9, "\(verdict)")
            }
        }
    }

    private func output(of command: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = command
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.start()
        let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self)
    }
}
