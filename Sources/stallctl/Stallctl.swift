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
              stallctl top                       what to fix first
              stallctl show 0193c1e2             one report: when, where, for how long
              stallctl ingest /var/lib/stalls    gather many apps' stores into one

            The store is --store PATH, else $STALLCTL_STORE, else ./stalls.sqlite if that exists, else
            $XDG_STATE_HOME/stallwatch/stalls.sqlite.
            Exit codes: 0 done, 1 failed, 2 a threshold that you gave was crossed, 64 wrong usage.
            """,
        subcommands: [])

    static func main() {
        signal(SIGPIPE, SIG_IGN)
    }
}
