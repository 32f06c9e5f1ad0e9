import Foundation
import TestSupport
import Testing

/// Goal: what is read of another program's report is what is in it. Method: `make truth-formats`'s program, a few reports of
/// each format.
@Suite(.enabled(if: Oracle.hasPython)) struct FormatTruthTests {
    @Test(arguments: [false, true]) func `made-up reports are read as they were written`(
        isSabotaged: Bool
    ) throws {
        try withTemporaryDirectory { directory in
            let words = [
                "python3", "Tests/Truth/Formats/truth_formats.py",
                BuiltProgram.directory.path, directory.path, "20",
            ]
            let result = try Oracle.run(
                "/usr/bin/env", words,
                environment: [
                    "SABOTAGE": isSabotaged ? "1" : "0",
                    "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
                ], directory: Repository.root)
            let isRight = result.output.hasSuffix(" wrong=0 crashed=0\n")
            #expect(isRight != isSabotaged && result.output.contains("truth formats readers=17 "))
        }
    }
}
