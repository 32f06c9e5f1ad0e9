// `doctor`: checks the guarantees on this machine. StallDoctor plants stalls and judges; this reads the store.

internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import StallDoctor
internal import StallInspection
internal import StallModel
internal import StallQuery
internal import StallStore

struct Doctor: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Try what the agent and stallctl can do on this machine, as this user.",
        discussion: """
            Plants stalls of known function, cause and duration in processes of its own,
            kills one of them, ingests their stores, and compares the reports. It takes
            about a second; what does not work is tried three times. Then it lists what
            is missing here, and what is lost without it. Run it where the app runs: in
            its container, as its user. With a program it also says whether
            'stallctl run' can watch that.

            The exit code is 1 if something does not work, or works less well.

            EXAMPLES
              stallctl doctor
              stallctl doctor -- ./server
              stallctl doctor --json | jq -r 'select(.verdict != "works")'
              docker run --rm -v $PWD:/app image /app/stallctl doctor
            """)

    @OptionGroup var output: OutputOptions

    @Option(help: .hidden) var plant: PlantingProcess?
    @Option(help: .hidden) var plantFolder: String?
    @Option(help: .hidden) var plantPatience = 1

    @Argument(
        parsing: .postTerminator,
        help: ArgumentHelp("A program to examine, after '--'.", valueName: "program"))
    var program: [String] = []

    func validate() throws {
        guard program.count < 2 else {
            throw ValidationError(
                "One program is expected after '--'; there were \(program.count) words.")
        }
    }

    func run() throws {
        if let plant, let plantFolder {
            return try plant.run(inFolder: plantFolder, patience: plantPatience)
        }
        let examination = try examine()
        if output.json {
            try Output.write(json: examination.rows)
        } else {
            try output.show(DoctorView(examination: examination, terminal: output.terminal).lines)
        }
        if !examination.isGood { throw ExitCode.failure }
    }

    /// Other load on the machine can disturb a trial, so failures are tried again.
    private static let patience = [1, 4, 10]

    private func examine() throws -> MachineExamination {
        let environment = ProcessInfo.processInfo.environment
        let folder = RunEnvironment(environment).storePath(option: nil).nearestDirectory
        var examination = MachineExamination(
            lacks: MachineSurroundings.lacks(storeFolder: folder, environment),
            program: try program.first.map(Self.examine))
        for attempt in 1...Self.patience.count {
            let began = ContinuousClock.now
            try Self.run(storeFolder: folder, patience: Self.patience[attempt - 1]) {
                trial, findings, unread in
                examination.findings =
                    attempt == 1
                    ? findings : zip(examination.findings, findings).map { $0.better(or: $1) }
                examination.failures = trial.failures.map { "\($0.part): \($0.reason)" } + unread
                examination.agentLines = trial.agentLines
            }
            // A trial that ran into its limit would do so again.
            if examination.worksWhole || ContinuousClock.now > began + .seconds(25) { break }
        }
        return examination
    }

    private static func makeFolder(orIn storeFolder: String) throws -> String {
        do throws(ScratchFolder.Failure) {
            return try ScratchFolder.make(named: "stallctl-doctor", orIn: [storeFolder])
        } catch {
            throw RunProblem(
                "no directory for the trial's stores: \(error.reason); set TMPDIR to one that this user can write"
            )
        }
    }

    private static func run(
        storeFolder: String, patience: Int,
        _ body: (StallTrial, [Finding], _ unread: [String]) -> Void
    ) throws {
        // First: a signal may come as soon as there is a directory.
        EndingSignal.intercept()
        let folder = try makeFolder(orIn: storeFolder)
        defer {
            StallTrial.clean(folder)
            EndingSignal.raiseIfPending()
        }
        var tests = Finding(.tests, .untried, "no process was blocked")
        let trial = try StallTrial(inFolder: folder, patience: patience) { tests = look(at: $0) }
        let path = folder + "/" + StallTrial.centralStore
        var reports: [StallReport] = []
        var unread: [String] = []
        do {
            guard access(path, F_OK) == 0 else { throw RunProblem("there is no central store") }
            try StoreOptions.open(path: path)
                .forEachReport(ReportFilter(), in: .newestFirst, limit: nil) { report, _, _ in
                    reports.append(report)
                }
        } catch {
            unread.append("the reports: \(error)")
        }
        let judge = TrialJudge(
            trial.stalls, reports, interruptions: trial.interruptions, lateness: trial.lateness)
        body(trial, judge.findings + [tests], unread)
    }

    /// Reads another process as hung tests are read.
    private static func look(at process: Int32) -> Finding {
        guard let running = RunningProcess(process) else {
            return Finding(.tests, .untried, "the process has ended")
        }
        let threads = InspectedTests(running).threads
        if threads.contains(where: { $0.frames.contains { $0.function == Plant.killed.function } })
        {
            return Finding(.tests, .works)
        }
        let failure = threads.compactMap(\.facts.failure).first.map { ": \($0)" } ?? ""
        return Finding(.tests, .fails, "no stack of another process's thread\(failure)")
    }

    private static func examine(_ name: String) throws -> ExaminedProgram {
        let program = try ProgramFile.find(name)
        return ExaminedProgram(name: name, obstacle: program.examine().obstacle?.sentence)
    }
}

extension PlantingProcess: ExpressibleByArgument {}

/// The program that was named.
struct ExaminedProgram {
    var name: String
    /// Why it cannot be watched, as a clause; nil if it can.
    var obstacle: String?
}

/// The results of `doctor`.
struct MachineExamination {
    var findings: [Finding] = []
    var lacks: [Lack]
    var failures: [String] = []
    var agentLines: [String] = []
    var program: ExaminedProgram?

    var worksWhole: Bool {
        findings.allSatisfy { $0.verdict == .works } && failures.isEmpty
    }

    var isGood: Bool {
        worksWhole && lacks.isEmpty && agentLines.isEmpty && program?.obstacle == nil
    }
}
