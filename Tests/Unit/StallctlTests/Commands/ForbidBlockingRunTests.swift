import Foundation
import StallArchive
import StallModel
import StallQuery
import TestSupport
import Testing

/// Goal: `stallctl run --forbid-blocking` reports the calls of a program's loops that may block, however short, and no
/// other; rules allow some; nothing is added for who does not ask.
/// Method: as RunCommandTests.
@Suite(.serialized) struct ForbidBlockingRunTests {
    private static let options = ["--forbid-blocking"]

    private func play(
        _ scenario: String, _ options: [String] = options, store suffix: String = ""
    ) throws -> (reports: [StallReport], errors: String) {
        let played = try RunCommandTests().play([scenario], options, store: suffix)
        let run = try #require(played[scenario])
        try #require(run.result.status == 0, "\(run.result)")
        return (run.reports, run.result.errors)
    }

    /// `nap usleep`, in the order of their begin.
    private func calls(_ reports: [StallReport]) -> [String] {
        reports.filter { $0.verdict == .blocking }.sorted { $0.start < $1.start }.map { report in
            let called = report.cause?.evidence.first {
                $0.name == EvidenceName.blockingCall.rawValue
            }
            let own = report.samples.first?.frames.first { $0.imageName == "loops" }
            return "\(own?.function ?? "") \(called?.value ?? "")"
        }
    }

    @Test func `the calls of callouts are reported, the last one before the end as well`() throws {
        let (reports, errors) = try play("blocking")
        #expect(errors == "")
        #expect(calls(reports) == ["nap usleep", "wait_one poll", "last usleep"])
        #expect(try play("blocking", []).reports.isEmpty)
    }

    @Test func `a rule allows a function, and whatever it calls`() throws {
        try withTemporaryDirectory { directory in
            let rules = directory.appending(path: "own.rules").path
            let text = """
                skip   function last        # of grouping
                allow  function nap "ans*"
                allow  image libnothing.so* function last

                """
            try text.write(toFile: rules, atomically: true, encoding: .utf8)
            let (reports, _) = try play("blocking", Self.options + ["--rules", rules])
            #expect(calls(reports) == ["last usleep"])
            try "allow module Cache".write(toFile: rules, atomically: true, encoding: .utf8)
            let refused = try Oracle.run(
                BuiltProgram.directory.appending(path: "stallctl").path,
                ["run", "--forbid-blocking", "--rules", rules, "--", "true"],
                environment: RunCommandTests.environment)
            #expect(refused.status == 1)
            #expect(
                refused.errors.hasSuffix(
                    ":1: expected a selector: image or function, not 'module'\n"),
                "\(refused.errors)")
        }
    }

    @Test func `a forked child's calls are reported on request`() throws {
        // The parent waits for it in a callout.
        #expect(try calls(play("blocking-child").reports) == ["main waitpid"])
        let child = try play(
            "blocking-child", Self.options + ["--follow-children"], store: "-fork1")
        #expect(calls(child.reports) == ["nap usleep", "wait_one poll", "last usleep"])
    }

    @Test(arguments: ["environment", "title", "wrong", "handler", "jump", "weak", "cloned"])
    func `the program behaves as without`(scenario: String) throws {
        let program = try RunCommandTests.built.get().path + "/loops"
        try withTemporaryDirectory { directory in
            func run(_ path: String, _ words: [String]) throws -> ProgramResult {
                try Oracle.run(
                    path, words, environment: RunCommandTests.environment, directory: directory)
            }
            let alone = try run(program, [scenario])
            let watched = try run(
                BuiltProgram.directory.appending(path: "stallctl").path,
                ["run", "--forbid-blocking", "--", program, scenario])
            #expect(watched.output == alone.output && watched.status == alone.status)
            #expect(watched.errors == "")
        }
    }

    /// The Swift runtime would ask libc for the size of what the program's allocator gave.
    @Test(arguments: [[], ["--forbid-blocking"]])
    func `a program with an allocator that has no sizes is not watched`(options: [String]) throws {
        let played = try #require(
            try RunCommandTests().play([""], options, program: "own_heap")[""])
        #expect(played.result.status == 0 && played.result.output == "served\n", "\(played)")
    }

    @Test func `a program that cannot be watched gets no variables`() throws {
        let played = try #require(
            try RunCommandTests().play(["environment"], Self.options, program: "static")[
                "environment"])
        #expect(played.result.status == 0 && played.result.output.contains("PATH="))
        #expect(!played.result.output.contains("STALLWATCH_"), "\(played.result.output)")
    }

    @Test func `the summary ranks the violations`() throws {
        let (_, errors) = try play("blocking", Self.options + ["--summary"])
        #expect(errors.contains("No stalls.  Not ranked: 3 violations.\n"), "\(errors)")
        #expect(errors.contains(": 3 violations in 3 groups\n"))
        #expect(errors.contains("nap  calls usleep"))
    }

    @Test func `tests of swift test are other processes`() throws {
        let said = try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path,
            ["run", "--forbid-blocking", "--", "swift", "test"],
            environment: RunCommandTests.environment)
        #expect(said.status == 64 && said.errors.contains("--follow-children"), "\(said)")
    }

    /// Programs without Dispatch must not find its functions.
    @Test func `the objects define functions of libc or Dispatch, and one of their own`() throws {
        _ = try RunCommandTests.built.get()
        func defined(_ object: String) throws -> Set<String> {
            try RunCommandTests.functions(definedIn: object)
        }
        let libc = try defined("libstallwatch-blocking.so")
        #expect(libc.isSuperset(of: ["read", "open64", "pthread_mutex_lock"]))
        let own = libc.filter { $0.contains("stall") || $0.contains("dispatch") }
        #expect(own == ["stallwatch_blocking_set"])
        let dispatch = try defined("libstallwatch-dispatch.so")
        #expect(dispatch.contains("dispatch_sync"))
        #expect(dispatch.filter { !$0.hasPrefix("dispatch_") } == ["stallwatch_dispatch_set"])
    }
}
