import Dispatch
import Foundation
import TestSupport
import Testing

/// Goal: a test of this package that hangs is named by scripts/test with its file and line, and where it is blocked.
/// Method: one that never ends, which runs only with STALLWATCH_PLANTED_HANG=1; scripts/test on this test bundle, as
/// it is built, with a program in the place of swift that runs the bundle as `swift test` does.
@Suite struct PlantedHangTests {
    static let isPlanted =
        ProcessInfo.processInfo.environment["STALLWATCH_PLANTED_HANG"] == "1"
    static let plantedLine = #line + 2

    @Test(.enabled(if: isPlanted)) func plantedHang() {
        DispatchSemaphore(value: 0).wait()
    }

    /// Not `swift test` itself, which would wait until this run has ended.
    static let swift = """
        #!/bin/bash
        [ "$1" = test ] || exit 64
        shift
        exec "$BUNDLE" --testing-library swift-testing "$@"
        """

    @Test(.disabled(if: isPlanted)) func `a test of ours that hangs is named in the log`() throws {
        try withTemporaryDirectory { directory in
            let swift = directory.appending(path: "swift")
            try Self.swift.write(to: swift, atomically: true, encoding: .utf8)
            chmod(swift.path, 0o755)
            let built = BuiltProgram.directory
            let log = directory.appending(path: "log")
            let result = try BuiltProgram(
                "test", ["--filter", "PlantedHangTests"],
                environment: [
                    "STALLWATCH_PLANTED_HANG": "1", "TEST_STILL_SECONDS": "3",
                    "TEST_LOG": log.path, "SWIFT": swift.path,
                    "STALLCTL": built.appending(path: "stallctl").path,
                    "BUNDLE": built.appending(path: "stallwatchPackageTests.xctest").path,
                ],
                in: Repository.root.appending(path: "scripts")
            ).finish()
            #expect(result.status == 1, "\(result)")
            let file = "/Tests/Unit/PackageTests/PlantedHangTests.swift"
            // In the log, and again at the end of what scripts/test prints.
            let end = try #require(result.output.range(of: "\nFailed:\n"), "\(result)")
            let texts = [
                try String(contentsOf: log, encoding: .utf8),
                String(result.output[end.upperBound...]),
            ]
            for text in texts {
                #expect(text.contains("stallctl: no test has started or ended for 3"), "\(text)")
                let lines = text.split(separator: "\n")
                #expect(
                    lines.contains {
                        $0.hasPrefix("  Test plantedHang() at ")
                            && $0.contains("\(file):\(Self.plantedLine), ")
                    }, "\(text)")
                #expect(
                    lines.contains {
                        $0.hasPrefix("      PlantedHangTests.plantedHang() at ")
                            && $0.hasSuffix("\(file):\(Self.plantedLine + 1)")
                    }, "\(text)")
            }
        }
    }
}
