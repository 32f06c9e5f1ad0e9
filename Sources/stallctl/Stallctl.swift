// Entry point: runs the subcommand and turns errors into one line and an exit code.

internal import ArgumentParser
internal import Glibc
internal import StallIngest
internal import StallModel
internal import StallStore

@main
struct Stallctl: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stallctl",
        abstract: "Rank, inspect and compare the stalls of an app's run loops.",
        discussion: """
            EXAMPLES
              stallctl top                                rank what to fix first
              stallctl list --since 2h                    list recent reports
              stallctl show 0193c1e2f0aa                  show one report in full
              stallctl report -o stalls.html              write one HTML page
              stallctl ingest --store all.sqlite stores/  import many stores
              stallctl run -- python3 app.py              watch an unmodified program
              stallctl --version                          print the version (or -V)

            The store is --store, else $STALLCTL_STORE, else that of the settings file,
            $XDG_CONFIG_HOME/stallwatch/stallctl.json, else the first of these that
            exists: ./stalls.sqlite, $XDG_STATE_HOME/stallwatch/stalls.sqlite, and the
            machine's store, /var/lib/stallwatch/central.sqlite.

            Text that does not fit the window is shown with a pager: $STALLWATCH_PAGER,
            else $PAGER, else less; --no-pager turns it off.
            Exit codes: 0 success, 1 failure, 2 threshold exceeded (diff --fail-above),
            3 partial answer (a shard of a cluster does not answer), 64 usage error.
            """,
        subcommands: [
            Top.self, List.self, Show.self, Tree.self, Diff.self, Trend.self, Why.self,
            Regroup.self, Merge.self, Export.self, Report.self, IngestCommand.self, Check.self,
            Prune.self, FleetParts.push, Run.self,
            Symbolicate.self, Migrate.self,
            Status.self, Doctor.self,
            Completions.self,
        ])

    static func main() {
        InheritedProcess.record()
        keepStandardDescriptors()
        // Writing to a closed pipe then fails with EPIPE, which ends the program quietly.
        signal(SIGPIPE, SIG_IGN)
        // Likewise EFBIG for a file that may not grow.
        signal(SIGXFSZ, SIG_IGN)
        expectDescriptors()
        Ingest.prepareProcess()
        guard !CommandLine.arguments.isEmpty else {
            say("stallctl: its arguments cannot be read: /proc is not mounted")
            Glibc.exit(1)
        }
        do {
            // Not ArgumentParser's `version:`, which would add --version to every subcommand, where it filters reports.
            if [["--version"], ["-V"]].contains(CommandLine.arguments.dropFirst().map(\.self)) {
                return try writeVersion()
            }
            try checkCommandName(CommandLine.arguments.dropFirst())
            var command = try parseAsRoot(separatingEmptyValues(CommandLine.arguments.dropFirst()))
            if !(command is Run) { ScratchFolder.provideTemporaryDirectory() }
            _ = try UserSettings.loaded.get()
            try command.run()
            if !PartialAnswer.missing.isEmpty { Glibc.exit(PartialAnswer.exitCode) }
        } catch OutputError.closedByReader {
            Glibc.exit(0)
        } catch {
            exit(after: error)
        }
    }

    /// Raises a low limit of open files (RLIMIT_NOFILE). If that is not allowed, fails here with a clear message.
    private static func expectDescriptors() {
        var limit = rlimit()
        let needed: rlim_t = 32
        guard getrlimit(__rlimit_resource_t(7), &limit) == 0, limit.rlim_cur < needed else {
            return
        }  // RLIMIT_NOFILE
        limit.rlim_cur = min(limit.rlim_max, 1024)
        setrlimit(__rlimit_resource_t(7), &limit)
        guard limit.rlim_cur < needed else { return }
        say(
            "stallctl: the limit on open files is \(limit.rlim_cur); at least \(needed) are needed: run 'ulimit -n \(needed)' first"
        )
        Glibc.exit(1)
    }

    private static func writeVersion() throws {
        let schema = newestSchemaVersion
        try Output.write(lines: ["stallctl \(stallwatchVersion), store schema \(schema)"])
    }

    /// Opens /dev/null for standard descriptors that are closed, so that no file gets number 0 to 2 and is written into
    /// by messages. They are opened in the wrong direction, so that using them fails.
    private static func keepStandardDescriptors() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }

    /// Makes `--loop=` the two words `--loop` and an empty one: ArgumentParser takes it for an option without a value,
    /// and a loop may have no name.
    static func separatingEmptyValues(_ words: some Collection<String>) -> [String] {
        let operands = words.firstIndex(of: "--") ?? words.endIndex
        return words.indices.flatMap { index -> [String] in
            let word = words[index]
            let isEmptyValue =
                index < operands && word.hasPrefix("--") && word.hasSuffix("=")
                && word.count(where: { $0 == "=" }) == 1
            return isEmptyValue ? [String(word.dropLast()), ""] : [word]
        }
    }

    /// Rejects an unknown command, with a suggestion; also after `help`.
    static func checkCommandName(_ words: some Collection<String>) throws {
        let names = configuration.subcommands.map { $0._commandName } + ["help"]
        guard let word = words.first(where: { $0 != "help" }), !word.hasPrefix("-"),
            !names.contains(word)
        else { return }
        let suggestion =
            Suggestion.closest(to: word, in: names).map { " Did you mean '\($0)'?" } ?? ""
        throw ValidationError("Unknown command '\(word)'.\(suggestion)")
    }

    /// Prints the error, in one line or, for usage errors, as ArgumentParser does, and exits.
    private static func exit(after error: any Error) -> Never {
        let code = error is MissingFleet ? .validationFailure : exitCode(for: error)
        if code == .success || error is ExitCode { exit(withError: error) }
        let isUsage = code != .failure && !(error is MissingFleet)
        if ErrorLine.isWanted,
            let line = try? (isUsage ? ErrorLine(usage: message(for: error)) : ErrorLine(error))
                .text
        {
            say(line)
        } else if !isUsage {
            say("stallctl: \(error)".printable)
        } else {
            for line in fullMessage(for: error).split(
                separator: "\n", omittingEmptySubsequences: false)
            { say(String(line).printable) }
        }
        Glibc.exit(code.rawValue)
    }
}
