import Foundation
import TestSupport
import Testing

/// Goal: texts stay within their width, their links lead somewhere, and they use the field's words. Method: `scripts/prose`
/// in this checkout, as `make gates` runs it; with `--words` for comments, whose findings per module may only become fewer.
/// A made-up module shows what a higher count does.
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

    @Test func `no module has more findings in comments than its count allows`() throws {
        let prose = try runProse(["--root", Repository.root.path])
        #expect(prose.status == 0, "\(prose.output)")
        #expect(
            prose.output.split(separator: "\n").last?.hasSuffix("problems=0") == true,
            "\(prose.output)")
    }

    @Test func `a finding more than allowed is a problem and named by its line`() throws {
        try withModule(
            "// Reads rows.\n// What tells is content.\nlet cells = 1  // a cell\n", allowed: 2
        ) { root in
            let prose = try runProse(["--root", root.path])
            #expect(prose.status == 1)
            #expect(
                prose.output.contains("Sources/Sample/Sample.swift:2: 'What'"), "\(prose.output)")
            #expect(
                prose.output.contains("Sources/Sample/Sample.swift:2: 'tells'"), "\(prose.output)")
            #expect(
                prose.output.contains("Sources/Sample/Sample.swift:3: 'cell'"), "\(prose.output)")
            #expect(
                prose.output.contains(
                    "Sample: 3 findings in comments; scripts/prose-words.txt allows 2"))
        }
    }

    @Test func `a count as allowed passes, and a module without a line may have none`() throws {
        let text = "// What tells is content.\n"
        try withModule(text, allowed: 2) { root in
            let prose = try runProse(["--root", root.path])
            #expect(prose.status == 0, "\(prose.output)")
        }
        try withModule(text, allowed: nil) { root in
            let prose = try runProse(["--root", root.path])
            #expect(prose.status == 1, "\(prose.output)")
        }
    }

    @Test func `only a count that has fallen is written to the table`() throws {
        try withModule("// A bucket.\n// One cell.\n", allowed: 5) { root in
            let prose = try runProse(["--root", root.path, "--lower"])
            let counts = try table(root)
            #expect(prose.status == 0, "\(prose.output)")
            #expect(counts == "# Counts.\nSample 1\n")
        }
        try withModule("// One cell, two cells.\n", allowed: 1) { root in
            let prose = try runProse(["--root", root.path, "--lower"])
            let counts = try table(root)
            #expect(prose.status == 1, "\(prose.output)")
            #expect(counts == "# Counts.\nSample 1\n")
        }
    }

    @Test(arguments: [
        "Asks for the handler to be called.", "Written in place.", "`cells` and `ask`",
        "What does it cost?",
        "A table cell.", "It takes place later.",
    ])
    func `the field's words are no finding`(text: String) throws {
        try withModule("// \(text)\n", allowed: nil) { root in
            let prose = try runProse(["--root", root.path])
            #expect(prose.status == 0, "\(prose.output)")
        }
    }

    private func runProse(_ arguments: [String]) throws -> (
        status: Int32, output: String, errors: String
    ) {
        try BuiltProgram("prose", arguments, in: Repository.root.appending(path: "scripts"))
            .finish()
    }

    /// A checkout of one module with one file, and its table of allowed counts.
    private func withModule(_ text: String, allowed: Int?, _ body: (URL) throws -> Void) throws {
        try withTemporaryDirectory { root in
            for folder in ["Sources/Sample", "scripts"] {
                try FileManager.default.createDirectory(
                    at: root.appending(path: folder), withIntermediateDirectories: true)
            }
            try Data(text.utf8).write(to: root.appending(path: "Sources/Sample/Sample.swift"))
            let line = allowed.map { "Sample \($0)\n" } ?? ""
            try Data("# Counts.\n\(line)".utf8).write(
                to: root.appending(path: "scripts/prose-words.txt"))
            try body(root)
        }
    }

    private func table(_ root: URL) throws -> String {
        try String(contentsOf: root.appending(path: "scripts/prose-words.txt"), encoding: .utf8)
    }
}
