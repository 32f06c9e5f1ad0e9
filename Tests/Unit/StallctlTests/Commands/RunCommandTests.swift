import Foundation
import StallArchive
import StallModel
import StallQuery
import TestSupport
import Testing

/// Goal: `stallctl run` watches programs that know nothing of it, each planned stall is one report and no rest is, and
/// a program behaves as without it.
/// Method: the built stallctl on a program in C (Tests/Fixtures/RunFixture), whose output, exit status and environment
/// are compared with those of a run without. The objects are linked by scripts/build-preload, as for a package.
@Suite(.serialized) struct RunCommandTests {
    /// The folder of the program; the objects lie beside stallctl.
    static let built = Result {
        let directory = FileManager.default.temporaryDirectory.appending(
            path: "stallwatch-run-\(getpid())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let root = Repository.root
        let source = root.appending(path: "Tests/Fixtures/RunFixture/loops.c").path
        for command in [
            [root.appending(path: "scripts/build-preload").path, BuiltProgram.directory.path],
            ["clang", "-O1", "-g", "-Wall", "-Wextra", source, "-o", directory.path + "/loops"],
            ["clang", "-O1", "-static", source, "-o", directory.path + "/static"],
            [
                "clang", "-O1", "-fno-builtin",
                root.appending(path: "Tests/Fixtures/RunFixture/own_heap.c").path, "-o",
                directory.path + "/own_heap",
            ],
        ] {
            let result = try Oracle.run(
                "/usr/bin/env", command, environment: ProcessInfo.processInfo.environment)
            try #require(result.status == 0, "\(command[0]): \(result.errors)")
        }
        return directory
    }

    struct Played {
        var result: ProgramResult
        var reports: [StallReport]
    }

    static let environment = ["PATH": "/usr/bin:/bin", "TZ": "UTC"]

    /// Runs the program below `stallctl run`, several scenarios at once.
    func play(
        _ scenarios: [String], _ options: [String] = [], program: String = "loops",
        store suffix: String = ""
    ) throws -> [String: Played] {
        let built = try Self.built.get()
        return try withTemporaryDirectory { directory in
            let running = try scenarios.map { scenario in
                let store = directory.appending(path: scenario)
                let command =
                    ["run", "--store", store.path + ".sqlite"] + options
                    + ["--", built.path + "/" + program, scenario]
                return (scenario, store, try BuiltProgram("stallctl", command))
            }
            var played: [String: Played] = [:]
            for (scenario, store, process) in running {
                let result = process.finish()
                let path = store.path + suffix + ".sqlite"
                let reports =
                    FileManager.default.fileExists(atPath: path)
                    ? try ReportStore.open(path: path).reports(ReportFilter(), limit: nil) : []
                played[scenario] = Played(
                    result: .init(
                        status: result.status, output: result.output, errors: result.errors),
                    reports: reports)
            }
            return played
        }
    }

    @Test func `a stall of a loop is one report, whatever the loop waits by`() throws {
        let scenarios = ["epoll", "poll", "select", "request", "thread", "fortified", "jump"]
        for (scenario, played) in try play(scenarios + ["closed", "moved"]) {
            #expect(played.result.status == 0 && played.result.errors == "", "\(scenario)")
            try #require(played.reports.count == 1, "\(scenario): \(played.reports.count) reports")
            let report = played.reports[0]
            #expect(report.loop == (scenario == "thread" ? "server" : "main"))
            #expect(report.duration > .milliseconds(490), "\(scenario): \(report.duration)")
            let functions = report.samples.flatMap(\.frames).compactMap(\.function)
            #expect(functions.contains(scenario == "request" ? "request" : "planned_stall"))
            #expect(report.run.app == "loops")
        }
    }

    /// Version managers have such scripts in place of programs.
    @Test func `what a shell script executes in its own process is watched, its children are not`()
        throws
    {
        let built = try Self.built.get()
        let script = built.appending(path: "shim").path
        try
            "#!/bin/sh\n\(built.path)/loops poll\nexec /usr/bin/env sh -c 'exec \(built.path)/loops \"$0\"' \"$1\"\n"
            .write(toFile: script, atomically: true, encoding: .utf8)
        chmod(script, 0o755)
        for (scenario, played) in try play(["epoll"], program: "shim") {
            #expect(played.result.status == 0 && played.result.errors == "", "\(scenario)")
            #expect(played.reports.map(\.run.app) == ["shim"])
        }
    }

    /// The loop waits for the agent for a quarter of a second at most, which a busy machine may exceed.
    @Test func `the work after a first wait that returns at once is watched`() throws {
        let found = try eventually { () -> Bool? in
            try play(["first"])["first"]?.reports.count == 1 ? true : nil
        }
        #expect(found == true)
    }

    /// One of the versions that CPython's frames are read of: 3.11 to 3.14.
    private static let python = "/usr/bin/python3"

    @Test(.enabled(if: access(python, X_OK) == 0))
    func `a stall of a Python program names its functions and lines`() throws {
        let program = Repository.root.appending(path: "Tests/Fixtures/RunFixture/stalls.py").path
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "python.sqlite").path
            let run = try Oracle.run(
                BuiltProgram.directory.appending(path: "stallctl").path,
                ["run", "--store", store, "--", Self.python, program], environment: Self.environment
            )
            try #require(run.status == 0, "\(run.errors)")
            let reports = try ReportStore.open(path: store).reports(ReportFilter(), limit: nil)
            let stacks = reports.map { report in
                report.samples.map { sample in
                    sample.frames.filter { $0.file == program }.map {
                        "\($0.function ?? ""):\($0.line ?? 0)"
                    }
                }
            }
            func isSeen(_ frames: [String]) -> Bool {
                stacks.contains { $0.contains { $0.starts(with: frames) } }
            }
            #expect(isSeen(["Handler.answer:9", "main:29"]), "\(stacks)")
            #expect(isSeen(["by_key.<locals>.wait:21", "by_key:24", "main:33"]), "\(stacks)")
            #expect(
                isSeen(["Handler.compute:14", "main:31"])
                    || isSeen(["Handler.compute:15", "main:31"]), "\(stacks)")
            // The interpreter's own functions and its library do not name the groups.
            let top = try Oracle.run(
                BuiltProgram.directory.appending(path: "stallctl").path,
                ["top", "--store", store, "--json"], environment: Self.environment)
            #expect(top.output.contains("sleep in Handler.answer <- main"))
            #expect(top.output.contains("sleep in by_key.<locals>.wait <- by_key"))
        }
    }

    /// The agent writes what is known before it looks for the interpreter's own symbols.
    @Test(.enabled(if: access(python, X_OK) == 0))
    func `a Python program that is killed in its stall has names`() throws {
        let program = Repository.root.appending(path: "Tests/Fixtures/RunFixture/killed.py").path
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "killed.sqlite").path
            let run = try Oracle.run(
                BuiltProgram.directory.appending(path: "stallctl").path,
                ["run", "--store", store, "--", Self.python, program, store],
                environment: Self.environment)
            #expect(run.status == SIGKILL, "\(run.errors)")
            let list = try Oracle.run(
                BuiltProgram.directory.appending(path: "stallctl").path,
                ["list", "--store", store, "--csv"], environment: Self.environment)
            #expect(list.output.contains("load_settings <- main"), "\(list.output)")
        }
    }

    private static let node = "/usr/bin/node"

    /// V8 writes the names of its functions where it is told to. Their stacks lead through its built-in functions.
    @Test(.enabled(if: access(node, X_OK) == 0))
    func `a stall of a Node program names its JavaScript functions`() throws {
        let program = Repository.root.appending(path: "Tests/Fixtures/RunFixture/stalls.js").path
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "node.sqlite").path
            let run = try Oracle.run(
                BuiltProgram.directory.appending(path: "stallctl").path,
                [
                    "run", "--store", store, "--", Self.node, "--perf-basic-prof",
                    "--interpreted-frames-native-stack", "--no-logfile-per-isolate",
                    "--logfile=+", program,
                ], environment: Self.environment)
            try #require(run.status == 0, "\(run.errors)")
            let list = try Oracle.run(
                BuiltProgram.directory.appending(path: "stallctl").path,
                ["list", "--store", store, "--csv"], environment: Self.environment)
            #expect(list.output.contains("ipc in runTool <- "), "\(list.output)")
            let reports = try ReportStore.open(path: store).reports(ReportFilter(), limit: nil)
            let frames = reports.flatMap(\.samples).flatMap(\.frames).filter { $0.file == program }
            // V8 writes down where a function begins.
            let functions = Set(frames.map { "\($0.function ?? ""):\($0.line ?? 0)" })
            #expect(functions.isSuperset(of: ["computeHash:5", "runTool:12"]), "\(functions)")
        }
    }

    @Test func `rests, sleeps, clients, pools and loops that were left are no stalls`() throws {
        let scenarios = ["idle", "bootstrap", "sleeps", "pool", "client", "left", "handler"]
        for (scenario, played) in try play(scenarios) {
            #expect(played.result.status == 0 && played.result.errors == "", "\(scenario)")
            #expect(played.reports.filter { $0.verdict == .stalled }.isEmpty, "\(scenario)")
        }
    }

    @Test func `children are watched only on request, forked or executed`() throws {
        for (scenario, played) in try play(["child", "executed"]) {
            #expect(played.reports.isEmpty, "\(scenario)")
        }
        let followed = try play(["child", "executed"], ["--follow-children"])
        #expect(followed["child"]?.reports.count == 1)
        #expect(followed["executed"]?.reports.count == 1)
        // The second child is of a parent whose agent runs: it has a store of its own.
        let second = try play(["child"], ["--follow-children"], store: "-fork1")
        #expect(second["child"]?.reports.count == 1)
    }

    /// Both wait for each other where a fork waits until the agent runs: a second for each fork.
    @Test func `a program that forks while its agent starts is not held up`() throws {
        for options in [[], ["--follow-children"]] {
            let played = try #require(try play(["forks"], options)["forks"])
            #expect(played.result.output == "held 0\nheld 0\n")
            #expect(!played.reports.isEmpty)
        }
    }

    @Test(arguments: ["environment", "title", "wrong", "epoll", ""])
    func `output, status and environment are those of a run without`(scenario: String) throws {
        let program = try Self.built.get().path + "/loops"
        try withTemporaryDirectory { directory in
            let alone = try Oracle.run(
                program, [scenario], environment: Self.environment, directory: directory)
            for options in [[], ["--summary"], ["--app", "x", "--threads", "all"]] {
                let watched = try Oracle.run(
                    BuiltProgram.directory.appending(path: "stallctl").path,
                    ["run"] + options + ["--", program, scenario], environment: Self.environment,
                    directory: directory)
                #expect(watched.status == alone.status)
                #expect(watched.output == alone.output)
                #expect(watched.errors.isEmpty == (options != ["--summary"]))
            }
        }
    }

    @Test func `a program that cannot be watched runs all the same`() throws {
        let said = try #require(try play(["wrong"], program: "static")["wrong"])
        #expect(said.result.status == 0 && said.result.output == "-1 -1 -1 -1 -1 -1\n")
        #expect(said.result.errors.split(separator: "\n").count == 1)
        #expect(said.result.errors.contains("is not watched: it is linked statically"))
        let stallctl = BuiltProgram.directory.appending(path: "stallctl").path
        let unwritable = try Oracle.run(
            stallctl, ["run", "--store", "/proc/stalls.sqlite", "--", "/bin/echo", "yes"],
            environment: Self.environment)
        #expect(unwritable.status == 0 && unwritable.output == "yes\n")
    }

    @Test(arguments: [[], ["--summary"]])
    func `a signal ends the program, and the status shows it`(options: [String]) throws {
        let program = try Self.built.get().path + "/loops"
        let process = try BuiltProgram(
            "stallctl", ["run"] + options + ["--", program, "signalled"])
        #expect(process.nextLine() == "ready")
        kill(process.pid, SIGTERM)
        #expect(process.finish().status == SIGTERM)  // of a process that a signal ended
    }

    @Test(
        arguments: [
            (["--", "nowhere"], 127, "stallctl: nowhere: no such program\n"),
            (
                ["--", "\(Repository.root.path)/LICENSE"], 126,
                "stallctl: \(Repository.root.path)/LICENSE: Permission denied\n"
            ),
            (["--", "/"], 126, "stallctl: /: a directory; expected a program\n"),
        ] as [([String], Int32, String)])
    func `what cannot be executed has a shell's status`(
        words: [String], status: Int32, message: String
    ) throws {
        let said = try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path, ["run"] + words,
            environment: Self.environment)
        #expect(said.status == status && said.errors == message, "\(said)")
    }

    @Test(arguments: [
        [], ["--"], ["--threshold", "1ms", "--", "true"], ["--app", "", "--", "true"],
        ["--store", "", "--", "true"], ["--threads", "some", "--", "true"], ["true"],
    ])
    func `wrong usage is said`(words: [String]) throws {
        let said = try Oracle.run(
            BuiltProgram.directory.appending(path: "stallctl").path, ["run"] + words,
            environment: Self.environment)
        #expect(said.status == 64 && said.output == "", "\(said)")
    }

    @Test func `the summary ranks this run's stalls`() throws {
        let program = try Self.built.get().path + "/loops"
        try withTemporaryDirectory { directory in
            func run(_ options: [String], _ command: [String]) throws -> ProgramResult {
                try Oracle.run(
                    BuiltProgram.directory.appending(path: "stallctl").path,
                    ["run"] + options + ["--"] + command, environment: Self.environment,
                    directory: directory)
            }
            let shell = try run(["--summary"], ["sh", "-c", "/bin/true; /bin/true"])
            #expect(
                shell.errors
                    == "No stalls.\nProcesses that sh starts are watched with --follow-children.\n")
            _ = try run([], [program, "epoll"])
            let said = try run(["--summary"], [program, "epoll"])
            #expect(said.errors.contains(": 1 stall in 1 group"), "\(said.errors)")
            #expect(said.errors.contains("planned_stall"))
        }
    }

    static func functions(definedIn object: String) throws -> Set<String> {
        let said = try Oracle.run(
            "/usr/bin/env",
            ["nm", "-D", "--defined-only", BuiltProgram.directory.appending(path: object).path])
        let words = said.output.split(separator: "\n").map { $0.split(separator: " ") }
        return Set(
            words.filter { $0.count == 3 && $0[1].allSatisfy(\.isUppercase) }.map { String($0[2]) })
    }

    /// The doors and nothing else stand before what the program has; the Swift runtime stays inside.
    @Test func `the objects define the wait functions and one function of the agent`() throws {
        _ = try Self.built.get()
        #expect(
            try Self.functions(definedIn: "libstallwatch-preload.so") == [
                "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "__poll_chk",
                "__ppoll_chk",
                "select", "pselect",
            ])
        #expect(
            try Self.functions(definedIn: "libstallwatch-agent.so") == ["stallwatch_preload_start"])
    }
}
