import Foundation
import Testing
import TestSupport

/// Goal: no output of any command changes unnoticed. A change on purpose is recorded with `scripts/freeze record`, and its
/// commit says why.
/// Method: `scripts/freeze`, without the stores of thousands of reports: some 600 outputs of 30 stores.
@Suite struct FreezeTests {
    @Test func `every command prints what it printed when that was recorded`() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let result = try Oracle.run(
            root.appending(path: "scripts/freeze").path, ["--quick"],
            environment: [
                "STALLCTL": BuiltProgram.directory.appending(path: "stallctl").path,
                "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
            ], directory: root)
        #expect(result.status == 0, "\(result.output)")
    }
}
