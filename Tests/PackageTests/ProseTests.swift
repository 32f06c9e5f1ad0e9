import Foundation
import Testing

/// Goal: texts stay within their width, their links lead somewhere, and they use the field's words. Method: `scripts/prose`
/// in this checkout, as `make gates` runs it.
@Suite struct ProseTests {
    @Test func `the texts have no problem`() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
        // An export of the sources has no list of its files.
        guard FileManager.default.fileExists(atPath: root.appending(path: ".git").path) else {
            return
        }
        let (process, output) = (Process(), Pipe())
        process.executableURL = root.standardized.appending(path: "scripts/prose")
        process.standardOutput = output
        try process.run()
        let said = String(
            decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 0, "\(said)")
        #expect(said.split(separator: "\n").last?.hasSuffix("problems=0") == true, "\(said)")
    }
}
