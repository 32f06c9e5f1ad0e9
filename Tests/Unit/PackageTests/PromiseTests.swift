import Foundation
import TestSupport
import Testing

/// Goal: what docs/in-your-process.md promises has been tried. Method: each of its paragraphs, items and tables that says
/// "never", "at most" or the like ends with a comment that names plays of host-safety or suites of tests; they exist.
@Suite struct PromiseTests {
    private let promises = #/\b(never|at most|neither|nothing|no lock|none of your)\b/#
    private let shown = #/(?s)<!-- shown by: (.+?) -->/#

    private func blocks() throws -> [String] {
        let text = try String(
            contentsOf: Repository.root.appending(path: "docs/in-your-process.md"), encoding: .utf8)
        // A comment behind a list or a table is that of the whole.
        return text.components(separatedBy: "\n\n").reduce(into: []) { blocks, part in
            if part.hasPrefix("<!-- shown by:"), !blocks.isEmpty {
                blocks[blocks.count - 1] += "\n" + part
            } else {
                blocks.append(part)
            }
        }
    }

    @Test func `each promise says how it is shown`() throws {
        for block in try blocks() where !block.hasPrefix("#") && block.contains(promises) {
            #expect(block.contains(shown), "\(block)")
        }
    }

    @Test func `what shows a promise exists`() throws {
        let plays = try BuiltProgram("host-safety", ["list"]).finish().output.split(separator: "\n")
        let tests = FileManager.default.subpaths(
            atPath: Repository.root.appending(path: "Tests").path)
        let suites = (tests ?? []).map { ($0 as NSString).lastPathComponent }
        var count = 0
        for block in try blocks() {
            for comment in block.matches(of: shown) {
                for part in comment.1.split(separator: ",") {
                    let name = part.trimmingCharacters(in: .whitespacesAndNewlines)
                    count += 1
                    #expect(
                        plays.contains(Substring(name)) || suites.contains(name + ".swift"),
                        "\(name), in \(block)")
                }
            }
        }
        #expect(count > 20)
    }
}
