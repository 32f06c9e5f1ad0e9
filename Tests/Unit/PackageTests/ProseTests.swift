import Foundation
import TestSupport
import Testing

/// Goal: texts stay within their width, their links lead somewhere, and they use the field's words. Method: `scripts/prose`
/// in this checkout, as `make gates` runs it.
@Suite struct ProseTests {
    @Test func `the texts have no problem`() throws {
        let root = Repository.root
        // An export of the sources has no list of its files.
        guard FileManager.default.fileExists(atPath: root.appending(path: ".git").path) else {
            return
        }
        let prose = try BuiltProgram("prose", in: root.appending(path: "scripts")).finish()
        #expect(prose.status == 0, "\(prose.output)")
        #expect(
            prose.output.split(separator: "\n").last?.hasSuffix("problems=0") == true,
            "\(prose.output)")
    }
}
