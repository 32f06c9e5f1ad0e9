// `run`: starts an unmodified program with the agent. Run/ finds the program and what is loaded into it.

internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import StallAnalysis
internal import StallModel
internal import StallQuery

struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run an unmodified program with the agent in it.",
        discussion: """
            Loads the agent into a program that was not built with it, and records the
            stalls of its event loops: of the main thread, and of threads that come
            back to wait for the same descriptors by epoll, poll or select. Terminal,
            signals, process group and exit status are the program's own: stallctl is
            replaced by it, or with --summary passes them on. A program that cannot be
            watched (static, setuid, of another C library, written in Go) runs all the
            same, after one sentence on standard error.

            The store is --store, else $STALLWATCH_STORE, else stalls.sqlite in the
            service's state directory or in the working directory.

            Of 'swift test' the tests are followed instead. When no test has started or
            ended for --test-timeout, or at --deadline, each test that has not ended is
            named on standard error with its line, and where its threads are blocked or
            what its task awaits; with --store it is kept there as well. Nothing is
            loaded into the tests, unless --follow-children is given. With --kill-after
            the processes are then ended, and the status is 124.

            With --forbid-blocking, calls that may block in a callout of a watched loop
            are reported as well, however short they are: reads of files, sleeps,
            lookups of names, contended locks. 'stallctl top --state blocking' ranks
            them. Rules 'allow' of the grouping rules say what may block. Meant for
            tests and staging.

            EXAMPLES
              stallctl run -- python3 app.py
              stallctl run --summary --threshold 100ms -- node server.js
              stallctl run --app shop --app-version 2.3 --store /tmp/s.sqlite -- ./shop
              stallctl run --follow-children -- nginx -g 'daemon off;'
              stallctl run --forbid-blocking --summary -- ./server
              stallctl run --kill-after 30s -- swift test --parallel
              stallctl run --deadline 25m --format github -- swift test
            """)

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The app's name in reports. Default: the program's file name.", valueName: "name"))
    var app: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The app's version in reports. Default: 0.", valueName: "version"))
    var appVersion: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "How long a loop may be busy: 100ms, 2s. At least 20ms. Default: 250ms.",
            valueName: "duration"),
        transform: readDuration)
    var threshold: Duration?

    @Option(
        help: ArgumentHelp("The agent's store: a file.", valueName: "path"),
        completion: .file(extensions: ["sqlite"]))
    var store: String?

    @Option(
        help: ArgumentHelp(
            "The threads whose stacks are in a report: stalled or all.", valueName: "which"))
    var threads = RecordedThreads.stalled

    @Flag(help: "Rank the run's stalls on standard error when the program has ended.")
    var summary = false

    @Flag(help: "Watch also the processes that the program starts.")
    var followChildren = false

    @Flag(help: "Report calls that may block in callouts of its loops, however short they are.")
    var forbidBlocking = false

    @OptionGroup var grouping: GroupingOptions

    @OptionGroup(title: "Options for 'swift test'") var tests: TestOptions

    @Argument(
        parsing: .postTerminator,
        help: ArgumentHelp("The program and its arguments, after '--'.", valueName: "program"))
    var command: [String] = []

    enum RecordedThreads: String, ExpressibleByArgument, CaseIterable { case stalled, all }

    func validate() throws {
        guard let program = command.first, !program.isEmpty else {
            throw ValidationError("No program; expected it after '--': stallctl run -- PROGRAM")
        }
        if let threshold, !(.milliseconds(20) ... .seconds(86_400)).contains(threshold) {
            throw ValidationError("--threshold must be 20ms to 24h; it was \(threshold).")
        }
        if SwiftTestCommand(command) == nil, let name = tests.given {
            throw ValidationError("\(name) is for 'swift test'; the command is '\(program)'.")
        }
        if SwiftTestCommand(command) != nil, forbidBlocking, !followChildren {
            throw ValidationError(
                "--forbid-blocking needs --follow-children for 'swift test': the tests are another process."
            )
        }
        if let app, app.isEmpty { throw ValidationError("--app is empty; expected a name.") }
        if let store {
            try StoreOptions.checkPaths([store])
            guard !StoreOpener.isAddress(store) else {
                throw ValidationError("--store is a cluster; an agent's store is a file.")
            }
        }
    }

    func run() throws {
        let program: ProgramFile
        do { program = try ProgramFile.find(command[0]) } catch {
            say("stallctl: \(error)".printable)
            throw ExitCode(error.exitCode)
        }
        var environment = RunEnvironment(ProcessInfo.processInfo.environment)
        var allowed: [String]?
        if forbidBlocking {
            let rules = try grouping.rules(forStore: environment.storePath(option: store))
            // Linux takes a variable of 128 KiB.
            guard rules.allowed.joined().utf8.count < 100_000 else {
                throw RunProblem(
                    "\(rules.file ?? "rules"): the rules 'allow' are too long; expected less than 100,000 bytes"
                )
            }
            allowed = rules.allowed
        }
        if let test = SwiftTestCommand(command) {
            if followChildren || summary { prepare(&environment, for: program, allowed) }
            return try run(test, program, environment)
        }
        prepare(&environment, for: program, allowed)
        guard summary else {
            InheritedProcess.current.restore()
            let failure = program.execute(command, environment)
            say("stallctl: \(command[0]): \(String(cString: strerror(failure)))".printable)
            throw ExitCode(126)
        }
        try runAndRank(program, environment)
    }

    /// Adds what the agent reads, or says why the program is not watched.
    ///
    /// - Parameter allowed: The rules of what may block; nil if blocking is not forbidden.
    private func prepare(
        _ environment: inout RunEnvironment, for program: ProgramFile, _ allowed: [String]?
    ) {
        let subject = program.examine()
        do {
            if let reason = subject.obstacle, !(followChildren && reason.isOnlyItsOwn) {
                throw RunProblem("\(command[0]) is not watched: \(reason.sentence)")
            }
            if let reason = subject.obstacle {
                say("stallctl: \(command[0]) is not watched itself: \(reason.sentence)".printable)
            }
            var libraries = [PreloadLibrary.loops]
            if forbidBlocking { libraries.append(.blocking) }
            if forbidBlocking, subject.loads("libdispatch.so") { libraries.append(.dispatch) }
            let paths = try libraries.map { try $0.find() }
            try checkStore(environment.storePath(option: store))
            environment.preload(paths)
        } catch {
            return say("stallctl: \(error)".printable)
        }
        if let app { environment.set("STALLWATCH_APP", app) }
        if let appVersion { environment.set("STALLWATCH_APP_VERSION", appVersion) }
        if let threshold {
            environment.set("STALLWATCH_THRESHOLD_MS", "\(Int(threshold / .milliseconds(1)))")
        }
        if store != nil || environment["STALLWATCH_STORE"] != nil {
            environment.set("STALLWATCH_STORE", environment.storePath(option: store))
        }
        if threads == .all { environment.set("STALLWATCH_THREADS", "all") }
        if let allowed { environment.forbidBlocking(allowing: allowed) }
        if followChildren {
            environment.set("STALLWATCH_FOLLOW_CHILDREN", "1")
        } else if subject.launches > 0 || subject.isShell {
            if subject.launches > 0 {
                environment.set("STALLWATCH_RUN_EXECS", "\(subject.launches)")
            }
            if app == nil { environment.set("STALLWATCH_APP", program.name) }
        }
        environment.finish()
    }

    /// The agent does not report a store that it cannot write, because standard error is the program's.
    private func checkStore(_ path: String) throws {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        var status = stat()
        let place = stat(path, &status) == 0 ? path : folder
        // A missing folder is created by the agent.
        guard access(place, F_OK) == 0, access(place, W_OK) != 0 else { return }
        throw RunProblem(
            "\(command[0]) is not watched: \(place): \(String(cString: strerror(errno)))")
    }

    private func runAndRank(_ program: ProgramFile, _ environment: RunEnvironment) throws {
        let began = UnixTime.now
        let end: ChildProgram.End
        do { end = try ChildProgram.run(program, command, environment) } catch {
            say("stallctl: \(command[0]): \(String(cString: strerror(error.errno)))".printable)
            throw ExitCode(126)
        }
        sayRanking(since: began, program, environment)
        end.endLikewise()
    }

    func sayRanking(
        since began: UnixTime, _ program: ProgramFile, _ environment: RunEnvironment
    ) {
        do {
            for line in try ranking(since: began, program, environment) { say(line) }
        } catch {
            say("stallctl: there is no summary: \(error)".printable)
        }
    }

    /// Why a shell script may have no reports.
    private func hint(for program: ProgramFile) -> [String] {
        guard !followChildren, program.examine().isShell else { return [] }
        return [
            "Processes that \(program.name) starts are watched with --follow-children.".printable
        ]
    }

    private func ranking(
        since began: UnixTime, _ program: ProgramFile, _ environment: RunEnvironment
    ) throws -> [String] {
        let path = environment.storePath(option: store)
        guard access(path, F_OK) == 0 else { return ["No stalls."] + hint(for: program) }
        var filter = ReportFilter()
        if !followChildren || app != nil { filter.apps = [app ?? program.name] }
        filter.since = began
        let store = try StoreOptions.open(path: path)
        let stalls = try ranking(of: filter, by: .total, in: store, path)
        guard forbidBlocking else { return stalls }
        filter.verdicts = [.blocking]
        return try stalls + [""] + ranking(of: filter, by: .count, in: store, path)
    }

    private func ranking(
        of filter: ReportFilter, by order: RankingOrder, in store: any QueryableStore,
        _ path: String
    ) throws -> [String] {
        let limit = 10
        let question = try grouping.question(to: store, filter)
        let ranking = try question.ranking(by: order, limit: limit)
        let holders = try ranking.lockHolders(in: store, limit: limit, rules: question.rules)
        let calls = try ranking.blockingCalls(in: store, limit: limit)
        var terminal = Terminal.standardOutput(color: .auto)
        terminal.usesColor = terminal.usesColor && isatty(STDERR_FILENO) == 1
        terminal.usesLinks = false
        return TopView(
            ranking: ranking, limit: limit, frameCount: 2, storeOptions: [path], holders: holders,
            calls: calls, terminal: terminal
        ).lines
    }
}

/// Why a program runs without the agent.
struct RunProblem: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
