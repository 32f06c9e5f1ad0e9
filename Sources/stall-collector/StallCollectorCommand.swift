// The collector's program. Without the trait Collector it says so, and is not more than that.

#if Collector
internal import ArgumentParser
internal import StallModel

@main
struct StallCollectorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stall-collector",
        abstract: "Receive stall reports from many machines into one store.",
        discussion: """
            Senders are 'stallctl push URL'. docs/fleet.md describes the protocol, every
            status and every limit.

            EXAMPLES
              stall-collector token add --app photos --write --tokens tokens
              stall-collector serve --store central.sqlite --tokens tokens
            """,
        version: "stall-collector \(stallwatchVersion)",
        subcommands: [Serve.self, TokenCommand.self], defaultSubcommand: Serve.self)
}
#else
internal import Glibc

@main
struct StallCollectorCommand {
    static func main() {
        let text =
            "stall-collector: built without the package trait Collector: swift build --traits Collector\n"
        _ = write(STDERR_FILENO, text, text.utf8.count)
        exit(1)
    }
}
#endif
