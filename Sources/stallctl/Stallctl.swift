// The command. It only picks the subcommand, and turns what went wrong into one line and an exit code.

internal import ArgumentParser
internal import Glibc

@main
struct Stallctl: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stallctl",
        abstract: "Show where an app's loops lost their time.",
        discussion: """
            EXAMPLES
              stallctl top                                what to fix first
              stallctl list --since 2h                    the latest reports
              stallctl show 0193c1e2f0aa                  one report, in full
              stallctl ingest --store all.sqlite stores/  many stores into one

            The store is --store, else $STALLCTL_STORE, else ./stalls.sqlite if it
            exists, else
            $XDG_STATE_HOME/stallwatch/stalls.sqlite.
            Exit codes: 0 done, 1 failed, 2 a threshold that you gave was crossed, 64 wrong usage.
            """,
        subcommands: [
            Top.self, List.self, Show.self, Why.self, Export.self, IngestCommand.self, Migrate.self,
            Status.self,
            Completions.self,
        ])

    static func main() {
        signal(SIGPIPE, SIG_IGN)  // so that a closed pipe is an error of `write`, which ends it quietly
        do {
            try checkCommandName(CommandLine.arguments.dropFirst().first)
            var command = try parseAsRoot()
            try command.run()
        } catch OutputError.closedByReader {
            Glibc.exit(0)
        } catch {
            exit(after: error)
        }
    }

    /// Refuses a first word that is no command, with the one that was probably meant.
    static func checkCommandName(_ word: String?) throws {
        let names = configuration.subcommands.map { $0._commandName } + ["help"]
        guard let word, !word.hasPrefix("-"), !names.contains(word) else { return }
        let suggestion =
            Suggestion.closest(to: word, in: names).map { " Did you mean '\($0)'?" } ?? ""
        throw ValidationError("There is no command '\(word)'.\(suggestion)")
    }

    /// Says what was wrong in one line, or as the parser does for wrong usage, and ends the program.
    private static func exit(after error: any Error) -> Never {
        let code = exitCode(for: error)
        if code == .success || error is ExitCode { exit(withError: error) }
        let message = code == .failure ? "stallctl: \(error)" : fullMessage(for: error)
        for line in message.split(separator: "\n", omittingEmptySubsequences: false) {
            say(String(line).printable)
        }
        Glibc.exit(code.rawValue)
    }
}
