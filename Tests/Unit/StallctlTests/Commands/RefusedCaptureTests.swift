import Foundation
import TestSupport
import Testing

/// Goal: if the system refuses the agent something, or the thread is in a bad state, the report states what is missing.
/// Method: a program whose agent meets that, in its own process, and `stallctl show` of what it stored.
@Suite struct RefusedCaptureTests {
    @Test(
        arguments: [
            (
                "proc",
                [
                    "No stack was captured.", "was blocked, and /proc does not show where",
                    "not readable",
                ]
            ),
            ("memory", ["stall(store:refused:)", "clock_nanosleep"]),
            ("rights", ["No stack was captured.", "this process is not dumpable"]),
            ("late-rights", ["stall(store:refused:)", "clock_nanosleep"]),
            ("ended", ["stalled for", "stall(store:refused:)", "clock_nanosleep"]),
            ("overflow", ["its end is not recorded yet", "handle_overflow", "overflowStack()"]),
        ])
    func `a report says what there is and what is missing`(
        refused: String, expected: [String]
    ) throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite").path
            let played = try BuiltProgram("AgentFixture", ["refused", store, refused]).finish()
            #expect(played.status == 0)
            if played.output.contains("skipped") { return }
            let list = try BuiltProgram("stallctl", ["list", "--json", "--store", store]).finish()
            let line = try #require(
                list.output.split(separator: "\n").first, "\(list.errors)\n\(played.output)")
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            let id = try #require((object as? [String: Any])?["id"] as? String)
            let shown = try BuiltProgram("stallctl", ["show", "--store", store, id]).finish()
            for text in expected {
                #expect(shown.output.contains(text), "\(text)\n\(shown.output)")
            }
            #expect(!shown.output.contains("(stack truncated"))
        }
    }

    /// Goal: an app that runs out of descriptors is not ended by its agent, however few are left.
    @Test(arguments: 0...14) func `an app with few descriptors lives on`(left: Int) throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "stalls.sqlite").path
            let played = try BuiltProgram("AgentFixture", ["refused", store, "files-\(left)"])
                .finish()
            #expect(played.status == 0)
            // Any of its parts without a descriptor reports it.
            let isSaid = ["stalls are counted", "stalls will not be recorded"]
                .contains { played.errors.contains($0) }
            #expect(isSaid || left > 2)
        }
    }
}
