import Foundation
import Testing
import TestSupport

/// Goal: no output of any command changes unnoticed. A change on purpose is recorded with `scripts/freeze record`, and its
/// commit says why.
/// Method: `scripts/freeze`, without the stores of thousands of reports: some 600 outputs of 30 stores.
@Suite struct FreezeTests {
    @Test func `every command prints what it printed when that was recorded`() throws {
        let result = try Oracle.runScript("freeze", ["--quick"])
        #expect(result.status == 0, "\(result.output)")
    }
}
