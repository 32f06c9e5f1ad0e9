import Foundation
import TestSupport
import Testing

/// Goal: the sample data is what its README says, and every command reads it.
/// Method: the built `stallctl` on a copy of it; what the demo measured in that run is the truth.
@Suite struct SampleDataTests {
    static let folder = Repository.root.appending(path: "sample-data")

    @Test func `top on the sample store names the five functions and the time they took`() throws {
        let measured = try DemoTests.measured(
            String(contentsOf: Self.folder.appending(path: "demo-measured.txt"), encoding: .utf8))
        #expect(measured.count == 5)
        try withCopy { store in
            let program = try BuiltProgram("stallctl", ["top", "--store", store, "--json"])
            let top = program.finish()
            #expect(top.status == 0 && top.errors == "")
            let groups = try DemoTests.groups(top.output)
            #expect(groups.count == 5)
            for group in groups {
                let calls = try #require(measured[group.function], "\(group.title)")
                #expect(group.count == calls.count)
                #expect(abs(group.total_ms - calls.reduce(0, +)) < 60 * Double(calls.count))
            }
        }
    }

    @Test func `the JSON lines are the store's reports`() throws {
        let lines = try String(
            contentsOf: Self.folder.appending(path: "demo.jsonl"), encoding: .utf8)
        try withCopy { store in
            let program = try BuiltProgram(
                "stallctl", ["export", "--format", "jsonl", "--store", store])
            let export = program.finish()
            #expect(export.status == 0)
            #expect(try ids(lines) == ids(export.output))
            #expect(try ids(lines).count == 15)
        }
    }

    private struct Report: Decodable { var id: String }

    private func ids(_ lines: String) throws -> Set<String> {
        try Set(
            lines.split(separator: "\n").map {
                try JSONDecoder().decode(Report.self, from: Data($0.utf8)).id
            })
    }

    /// SQLite may leave side files beside a store that it reads.
    private func withCopy(_ body: (String) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            let copy = directory.appending(path: "demo.sqlite")
            try FileManager.default.copyItem(
                at: Self.folder.appending(path: "demo.sqlite"), to: copy)
            try body(copy.path)
        }
    }
}
