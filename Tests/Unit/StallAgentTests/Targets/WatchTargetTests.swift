import Foundation
import StallModel
import StallArchive
import StallQuery
import TestSupport
import Testing

/// Goal: a stall of any watch target is reported once, with the thread and the function that stalled, and healthy or
/// idle operation is never reported.
/// Method: programs with an agent run in their own processes; their stores are read from outside.
@Suite(.serialized) struct WatchTargetTests {
    func reports(_ store: URL) throws -> [StallReport] {
        try ReportStore.open(path: store.path).reports(ReportFilter(), limit: nil)
    }

    /// A watchdog that itself gets no CPU calls a stall stopped or starved, for want of proof; a probe that gets none
    /// ends it late.
    let isOverloaded: Bool = {
        var load = [0.0, 0, 0]
        getloadavg(&load, 3)
        return load[0] > 3 * Double(ProcessInfo.processInfo.activeProcessorCount)
    }()

    /// All functions on the samples' stacks.
    func functions(_ report: StallReport) -> Set<String> {
        Set(report.samples.filter { !$0.isLate }.flatMap(\.frames).compactMap(\.function))
    }

    /// Runs scenarios in parallel, each in its own process.
    func play(_ scenarios: [String]) throws -> [String: (output: String, reports: [StallReport])] {
        try withTemporaryDirectory { directory in
            let running = try scenarios.map { scenario in
                let store = directory.appending(path: "\(scenario).sqlite")
                return (scenario, store, try BuiltProgram("TargetFixture", [scenario, store.path]))
            }
            var played: [String: (output: String, reports: [StallReport])] = [:]
            for (scenario, store, program) in running {
                let (status, output, errors) = program.finish()
                #expect(status == 0 && errors == "", "\(scenario): \(errors)")
                #expect(output.hasSuffix("done\n"), "\(scenario)")
                played[scenario] = (output, try reports(store))
            }
            return played
        }
    }

    static let programs: [(name: String, loop: String, function: String)] = [
        (name: "WatchAsyncMain", loop: "MainActor", function: "decodeOnMainActor()"),
        ("WatchDispatchMain", "main-queue", "answerSlowly()"),
        ("WatchMainRunLoop", "main", "layOutSlowly()"),
        ("WatchEventRunLoop", "main", "indexSlowly()"),
        ("watch-in-c", "compressor", "compress_slowly"),
    ]

    /// Each lives healthily for five seconds and stalls for 600 ms in the middle.
    @Test func `the five example programs are each reported once, in the right function`() throws {
        try withTemporaryDirectory { directory in
            let inC = try compile("Examples/WatchInC/main.c", to: "watch-in-c", in: directory)
            let running = try Self.programs.map { program in
                let store = directory.appending(path: "\(program.name).sqlite")
                let directory = program.name == "watch-in-c" ? inC : BuiltProgram.directory
                return (
                    program, store,
                    try BuiltProgram(program.name, [store.path], in: directory)
                )
            }
            for (program, store, process) in running {
                let (status, output, errors) = process.finish()
                #expect(status == 0 && errors == "", "\(program.name): \(errors)")
                let measured = try #require(output.firstMatch(of: /took (\d+) ms/), "\(output)")
                let reports = try reports(store)
                try #require(reports.count == 1, "\(program.name): \(reports.count) reports")
                #expect(reports[0].loop == program.loop)
                #expect(reports[0].state == .ended)
                #expect(isOverloaded || reports[0].verdict == .stalled)
                #expect(functions(reports[0]).contains(program.function))
                let error = reports[0].duration - .milliseconds(Int(measured.1)!)
                #expect(
                    isOverloaded
                        || error > .milliseconds(-60) && error < .milliseconds(60),
                    "\(program.name): \(reports[0].duration)")
            }
        }
    }

    @Test func `no misuse of the C interface does harm, and none is a stall`() throws {
        try withTemporaryDirectory { directory in
            let store = directory.appending(path: "misuse.sqlite")
            let built = try compile("Tests/Fixtures/CMisuse/misuse.c", to: "misuse", in: directory)
            let (status, output, errors) = try BuiltProgram("misuse", [store.path], in: built)
                .finish()
            #expect(status == 0 && errors == "")
            #expect(
                output == """
                    there is no configuration
                    the app's name must not be empty
                    a stall
                    done

                    """)
            #expect(try reports(store).isEmpty)
        }
    }

    /// Builds a C program as docs/c-api.md says; returns where it is.
    func compile(_ source: String, to name: String, in directory: URL) throws -> URL {
        let root = Repository.root
        let built = BuiltProgram.directory.path
        let clang = Process()
        clang.executableURL = URL(filePath: "/usr/bin/env")
        clang.arguments = [
            "clang", "-O2", "-g", "-Wall", "-Wextra", "-Werror",
            "-I", root.appending(path: "Sources/CStallAgent/include").path,
            root.appending(path: source).path,
            "-L", built, "-lStallAgentC", "-Wl,-rpath,\(built)",
            "-o", directory.appending(path: name).path,
        ]
        try clang.start()
        clang.waitUntilExit()
        #expect(clang.terminationStatus == 0)
        return directory
    }

    @Test func `one stall is one report, with its function on the stack`() throws {
        let played = try play([
            "queue-async", "queue-sync", "queue-target", "queue-barrier", "mode-stall",
            "loop-of-thread", "marks",
        ])
        for (scenario, (_, reports)) in played {
            try #require(reports.count == 1, "\(scenario): \(reports.count) reports")
            let report = reports[0]
            #expect(report.state == .ended && (isOverloaded || report.verdict == .stalled))
            #expect(functions(report).contains("plannedStall()"), "\(scenario)")
            #expect(
                report.duration > .milliseconds(400)
                    && (isOverloaded || report.duration < .seconds(1)),
                "\(scenario): \(report.duration)")
        }
        #expect(played["mode-stall"]?.reports[0].mode == "modal")
        #expect(played["queue-async"]?.reports[0].phase == .block)
        #expect(played["marks"]?.reports[0].phase == .marked)
    }

    @Test func `healthy, idle, suspended and ended is not stalled`() throws {
        let played = try play([
            "queue-backlog", "queue-suspended", "queue-idle", "queue-let-go", "pool-busy",
            "mode-idle", "mode-busy", "thread-ends",
        ])
        for (scenario, (_, reports)) in played {
            #expect(!reports.contains { $0.verdict == .stalled }, "\(scenario): \(reports)")
        }
        #expect(played["queue-let-go"]?.output.contains("let go") == true)
    }

    @Test func `an exhausted pool is reported with all of its threads`() throws {
        let reports = try #require(play(["pool-exhausted"]).values.first).reports
        try #require(reports.count == 1, "\(reports)")
        #expect(reports[0].loop == "cooperative pool")
        #expect(isOverloaded || reports[0].verdict == .stalled)
        #expect(functions(reports[0]).contains("plannedStall()"))
        let members = reports[0].threads.filter { $0.role == .member }
        #expect(members.count == ProcessInfo.processInfo.activeProcessorCount)
        for member in members {
            #expect(member.frames.contains { $0.function == "plannedStall()" })
        }
        #expect(reports[0].activity == "all \(members.count) threads taken")
    }

    @Test
    func `a job of a task that keeps its thread is reported, whatever its priority and its hooks`()
        throws
    {
        let planned = [
            "task-blocks": 1, "task-sleeps": 1, "task-priorities": 4, "task-label": 2,
            "task-thread-label": 1, "tasks-earlier-hook": 1, "tasks-later-hook": 1,
            "tasks-two-monitors": 2, "tasks-stopped": 0,
        ]
        let played = try play(planned.keys.sorted())
        for (scenario, (_, reports)) in played {
            try #require(
                reports.count == planned[scenario], "\(scenario): \(reports.count) reports")
            for report in reports {
                #expect(report.loop == "tasks" && report.state == .ended)
                #expect(isOverloaded || report.verdict == .stalled)
                #expect(functions(report).contains("plannedStall()"), "\(scenario)")
                #expect(
                    report.duration > .milliseconds(490)
                        && (isOverloaded || report.duration < .milliseconds(700)),
                    "\(scenario): \(report.duration)")
            }
        }
        #expect(
            Set(played["task-label"]?.reports.map(\.activity) ?? []) == ["GET /orders/:id", nil])
        #expect(played["task-thread-label"]?.reports.first?.activity == "decode")
        for (scenario, said) in [
            ("tasks-earlier-hook", "earlier hook called"),
            ("tasks-later-hook", "later hook called"),
            ("tasks-stopped", "set\ntaken back\nstays away"),
            ("tasks-two-monitors", "second monitor: 1"),
        ] {
            #expect(played[scenario]?.output == "\(said)\ndone\n")
        }
    }

    @Test func `a busy pool and a busy actor are no stalls, and a stall of an actor's is one`()
        throws
    {
        let played = try play(["tasks-busy", "tasks-actor", "tasks-actor-stall"])
        for scenario in ["tasks-busy", "tasks-actor"] {
            let reports = played[scenario]?.reports.filter { $0.verdict == .stalled }
            #expect(reports?.isEmpty == true, "\(scenario): \(reports ?? [])")
        }
        let reports = try #require(played["tasks-actor-stall"]?.reports)
        try #require(reports.count == 1, "\(reports.count) reports")
        #expect(functions(reports[0]).contains("plannedStall()"))
        #expect(isOverloaded || reports[0].duration > .milliseconds(350))
    }

    @Test func `an exhausted pool is reported with the jobs that occupy it, and not again`() throws
    {
        let reports = try #require(play(["tasks-exhausted"]).values.first).reports
        let count = ProcessInfo.processInfo.activeProcessorCount
        #expect(reports.count == count && Set(reports.map(\.loop)) == ["tasks"])
        let last = try #require(reports.max { $0.start < $1.start })
        #expect(last.activity == "all \(count) threads taken")
        #expect(last.threads.filter { $0.role == .member }.count == count)
    }

    func evidence(_ name: String, of report: StallReport) -> [String] {
        report.cause?.evidence.filter { $0.name == name }.map(\.value) ?? []
    }

    @Test
    func `a job on the agent's executor is reported with its label, and its end changes nothing`()
        throws
    {
        let played = try play(["executor", "executor-exhausted", "executor-stopped"])
        let reports = try #require(played["executor"]?.reports)
        try #require(reports.count == 1, "\(reports.count) reports")
        #expect(reports[0].loop == "task executor" && reports[0].activity == "GET /orders/:id")
        #expect(functions(reports[0]).contains("plannedStall()"))
        #expect(reports[0].duration > .milliseconds(490))
        let count = ProcessInfo.processInfo.activeProcessorCount
        let exhausted = try #require(played["executor-exhausted"]?.reports)
        #expect(exhausted.count == count)
        #expect(exhausted.contains { $0.activity == "all \(count) threads taken" })
        #expect(played["executor-stopped"]?.output == "ran\ndone\n")
        #expect(played["executor-stopped"]?.reports.isEmpty == true)
    }

    @Test func `requests that are open meanwhile are listed, and only the stalled one is named`()
        throws
    {
        let reports = try #require(play(["tasks-open"]).values.first).reports
        try #require(reports.count == 1, "\(reports.count) reports")
        #expect(reports[0].activity == "GET /orders/:id")
        let own = evidence("request", of: reports[0])
        let open = evidence("open request", of: reports[0])
        #expect(own.count == 1 && own[0].hasPrefix("GET /orders/:id, for "))
        #expect(
            Set(open.map { $0.prefix { $0 != "," } }) == ["GET /stock", "GET /report"], "\(open)")
    }

    @Test func `what the app's hook says of a suspicion is in the report`() throws {
        let reports = try #require(play(["suspicion"]).values.first).reports
        try #require(reports.count == 1, "\(reports.count) reports")
        #expect(evidence("queue depth", of: reports[0]) == ["7 of decoder"])
        #expect(isOverloaded || evidence("early", of: reports[0]) == ["true"])
    }

    @Test func `threads of a pool that all block while an item waits are reported once`() throws {
        let reports = try #require(play(["threads-exhausted"]).values.first).reports
        try #require(reports.count == 1, "\(reports)")
        #expect(reports[0].loop == "files" && functions(reports[0]).contains("plannedStall()"))
    }

    /// The threads get only the CPU that no other thread wants, and busy threads want all of it for three seconds.
    @Test func `threads of a pool that only lack a CPU are no stall`() throws {
        let reports = try #require(play(["threads-starved"]).values.first).reports
        #expect(reports.allSatisfy { $0.verdict != .stalled }, "\(reports)")
    }

    @Test func `systemd is notified while the app's loops make progress`() throws {
        let (output, reports) = try #require(play(["systemd"]).values.first)
        #expect(
            output == """
                asked: false
                asked: true
                ready true, alive true
                in the stall 0
                after it true
                at the end STOPPING=1
                done

                """)
        #expect(reports.map(\.loop) == ["decoder"])
    }

    @Test func `a main queue that never comes back does not keep the monitor from stopping`() throws
    {
        let reports = try #require(play(["main-blocked"]).values.first).reports
        #expect(Set(reports.map(\.loop)) == ["main-queue", "MainActor"])
    }
}
