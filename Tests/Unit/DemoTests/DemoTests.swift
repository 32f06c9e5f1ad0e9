import Foundation
import TestSupport
import Testing

/// Goal: the main job, for real: each planted stall is found once, under its own function, with its true duration.
/// Method: the demo runs in a process of its own and measures itself; its store goes through `stallctl ingest`, and
/// `stallctl top --json` is held against what the demo printed.
@Suite struct DemoTests {
    struct Group: Decodable {
        var rank: Int
        var title: String
        var count: Int
        var total_ms: Double
        var max_ms: Double
        var frames: [String]
        var cause: String?

        /// The name of the app function that leads the group.
        var function: String { String((frames.first ?? "").prefix { $0 != "(" }) }
    }

    /// The objects that `top --json` prints.
    static func groups(_ output: String) throws -> [Group] {
        try output.split(separator: "\n").map {
            try JSONDecoder().decode(Group.self, from: Data($0.utf8))
        }
    }

    /// The demo's own lines: name, count, milliseconds of every call.
    static func measured(_ output: String) -> [String: [Double]] {
        output.matches(of: /(?m)^  (\w+) (\d+)((?: \d+)+)$/).reduce(into: [:]) { calls, match in
            calls[String(match.1)] = match.3.split(separator: " ").compactMap { Double($0) }
        }
    }

    /// Work that needs a CPU or the disk may have waited longer for its turn, on a machine that is busy with other things.
    static let causes: [String: [String]] = [
        "sleepInTimer": ["sleep"], "drawComplexLayout": ["cpu", "starved"],
        "fetchSynchronously": ["network"], "saveEverything": ["disk", "starved"],
        "waitForWorker": ["lock"],
    ]

    @Test func `top ranks the demo's five stalls with their counts and durations`() throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite").path
            let central = directory.appending(path: "central.sqlite").path
            let (status, output, errors) = try BuiltProgram("Demo", [store]).finish()
            #expect(status == 0 && errors == "")
            let expected = Self.measured(output)
            #expect(
                Set(expected.keys) == [
                    "sleepInTimer", "drawComplexLayout", "fetchSynchronously", "saveEverything",
                    "waitForWorker",
                ])

            for _ in 0..<2 {
                let ingest = try BuiltProgram("stallctl", ["ingest", "--store", central, store])
                #expect(ingest.finish().status == 0)
            }
            let top = try BuiltProgram("stallctl", ["top", "--store", central, "--json"]).finish()
            #expect(top.status == 0 && top.errors == "")
            let groups = try Self.groups(top.output)
            let list = try BuiltProgram("stallctl", ["list", "--store", central, "--json"]).finish()
            let waiting = try #require(
                list.output.split(separator: "\n").first { $0.contains("waitForWorker()") }?
                    .firstMatch(of: /"id":"(\w+)"/))
            let show = try BuiltProgram(
                "stallctl", ["show", String(waiting.1), "--store", central]
            ).finish()
            #expect(
                show.output.contains(
                    /for a mutex held by thread \d+ 'compactor' in compactDatabase/))
            #expect(groups.count == expected.count)
            #expect(groups.map(\.rank) == Array(1...max(1, groups.count)))
            for group in groups {
                let name = group.function
                let calls = try #require(
                    expected[name], "\(group.title) is none of the demo's stalls")
                #expect(group.count == calls.count, "\(name)")
                #expect(
                    Self.causes[name]?.contains(group.cause ?? "none") == true,
                    "\(name): \(group.cause ?? "none")")
                #expect(abs(group.max_ms - calls.max()!) < 60, "\(name)")
                #expect(
                    abs(group.total_ms - calls.reduce(0, +)) < 60 * Double(calls.count), "\(name)")
            }
        }
    }
}
