import Foundation
import TestSupport
import Testing

/// Goal: `run -- swift test` changes nothing of a suite that ends, and ends all of one that hangs.
/// Method: the built stallctl on a script named swift, which plays SwiftPM: it starts a process that is called as a test
/// bundle is, and writes the stream that it was told to.
@Suite(.serialized) struct TestRunTests {
    /// The script's commands after its stream; `$0` is the folder.
    func run(
        _ body: String, _ options: [String] = [], words: [String] = ["test"],
        _ check: (ProgramResult, URL) throws -> Void
    ) throws {
        try withTemporaryDirectory { directory in
            let script = """
                #!/bin/bash
                echo "$*" > "\(directory.path)/words"
                stream=$3
                say() { printf '%s\\n' "$1" >> "$stream"; }
                described() {
                    say '{"kind":"test","payload":{"id":"M.'"$1"'()/A.swift:6:2","kind":"function","name":"'"$1"'()","sourceLocation":{"_filePath":"/p/A.swift","column":2,"fileID":"M/A.swift","line":6}},"version":0}'
                }
                event() {
                    say '{"kind":"event","payload":{"kind":"'"$1"'","testID":"M.'"$2"'()/A.swift:6:2"},"version":0}'
                }
                bundle() { exec -a fake.xctest bash -c "$1" -- --testing-library swift-testing; }
                \(body)
                """
            let program = directory.appending(path: "swift")
            try script.write(to: program, atomically: true, encoding: .utf8)
            chmod(program.path, 0o755)
            let temporary = directory.appending(path: "tmp")
            try FileManager.default.createDirectory(
                at: temporary, withIntermediateDirectories: true)
            let result = try Oracle.run(
                BuiltProgram.directory.appending(path: "stallctl").path,
                ["run"] + options + ["--", program.path] + words,
                environment: ["PATH": "/usr/bin:/bin", "TMPDIR": temporary.path])
            let left = try FileManager.default.contentsOfDirectory(atPath: temporary.path)
            #expect(left.isEmpty, "\(left)")
            try check(result, directory)
        }
    }

    @Test func `a suite that ends has its output and its status`() throws {
        try run(
            "described f; event testStarted f; event testEnded f; echo out; echo err >&2; exit 7"
        ) {
            result, directory in
            #expect(result.status == 7 && result.output == "out\n" && result.errors == "err\n")
            let words = try String(contentsOf: directory.appending(path: "words"), encoding: .utf8)
            #expect(words.hasPrefix("test --experimental-event-stream-output /"))
            #expect(words.hasSuffix(" --experimental-event-stream-version 0\n"))
        }
    }

    @Test func `a suite that crashes ends by its signal`() throws {
        try run("kill -SEGV $$") { result, _ in
            #expect(result.status == SIGSEGV && result.errors == "", "\(result)")
        }
    }

    @Test func `a command that runs no tests is executed in place of stallctl`() throws {
        try run("echo $PPID", words: ["test", "list"]) { result, directory in
            let words = try String(contentsOf: directory.appending(path: "words"), encoding: .utf8)
            #expect(words == "test list\n" && result.status == 0)
        }
    }

    @Test func `a test that hangs is named, and everything is ended`() throws {
        let body = """
            described f; described 'g\\u001b[2J'; event testStarted f
            (setsid sleep 4711.\(getpid()) &)
            say noise
            trap '' TERM INT
            bundle 'trap "" TERM; sleep 4712.\(getpid()); :'
            """
        try run(body, ["--test-timeout", "1s", "--kill-after", "0s"]) { result, _ in
            #expect(result.status == 124, "\(result)")
            #expect(result.errors.contains("Test f() at /p/A.swift:6"), "\(result)")
            #expect(!result.errors.contains("\u{1B}"))
            let running = try Oracle.run("/usr/bin/env", ["ps", "-eo", "args"]).output
            #expect(!running.contains("4711.\(getpid())") && !running.contains("4712.\(getpid())"))
        }
    }

    @Test func `a suite that goes on after a report is not ended`() throws {
        let body = """
            described f; event testStarted f
            (bundle 'sleep 4; :') & sleep 2.5; event testEnded f; event testStarted f; event testEnded f
            wait; exit 0
            """
        try run(body, ["--test-timeout", "1s", "--kill-after", "5s"]) { result, _ in
            #expect(result.status == 0, "\(result)")
            #expect(result.errors.contains("no test has started or ended"))
        }
    }

    func list(_ store: String) throws -> String {
        try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path,
            ["list", "--json", "--store", store], environment: ["PATH": "/usr/bin:/bin"]
        ).output
    }

    @Test func `a test that hangs is in the store that is named, as a hang once it was ended`()
        throws
    {
        let body = """
            described f; event testStarted f
            bundle 'sleep 4713; :'
            """
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "s.sqlite").path
            let options = ["--test-timeout", "1s", "--kill-after", "0s", "--store", store]
            try run(body, options + ["--app", "shop"]) { result, _ in
                #expect(result.status == 124, "\(result)")
            }
            let listed = try list(store)
            #expect(
                listed.contains(#""app":"shop""#) && listed.contains(#""loop":"M.f()""#),
                "\(listed)")
            #expect(listed.contains(#""state":"hang""#) && listed.contains(#""ending":"killed""#))
            #expect(listed.split(separator: "\n").count == 1)
        }
    }

    @Test func `a test that goes on after a report has ended in the store`() throws {
        let body = """
            described f; described g; event testStarted f; event testStarted g
            (bundle 'sleep 4; :') & sleep 2.5; event testEnded f; sleep 1; event testEnded g
            wait; exit 0
            """
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "s.sqlite").path
            try run(body, ["--test-timeout", "1s", "--store", store]) { result, _ in
                #expect(result.status == 0, "\(result)")
            }
            let lines = try list(store).split(separator: "\n")
            #expect(lines.count == 2 && lines.allSatisfy { $0.contains(#""state":"ended""#) })
        }
    }

    @Test func `a store that cannot be written is said, and the tests run on`() throws {
        let body = """
            described f; event testStarted f
            (bundle 'sleep 3; :') & sleep 2; event testEnded f; wait; exit 3
            """
        try run(body, ["--test-timeout", "1s", "--store", "/proc/s.sqlite"]) { result, _ in
            #expect(result.status == 3 && result.errors.contains("not stored"), "\(result)")
        }
    }

    @Test(arguments: ["text", "github", "json"])
    func `the deadline reports in each form, also without tests`(form: String) throws {
        try run("sleep 100", ["--deadline", "1s", "--kill-after", "0s", "--format", form]) {
            result, _ in
            #expect(result.status == 124, "\(result)")
            #expect(
                result.errors.contains(form == "json" ? "hung-run/1" : "1.")
                    && result.errors.hasSuffix("are ended\n"))
        }
    }

    @Test(arguments: [
        ["--deadline", "1m", "--", "true"], ["--format", "github", "--", "true"],
        ["--test-timeout", "0s", "--", "swift", "test"],
        ["--format", "xml", "--", "swift", "test"],
        ["--kill-after", "9999h", "--", "swift", "test"],
    ])
    func `wrong usage is said`(words: [String]) throws {
        let said = try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path, ["run"] + words,
            environment: ["PATH": "/usr/bin:/bin"])
        #expect(said.status == 64 && said.output == "", "\(said)")
    }
}
