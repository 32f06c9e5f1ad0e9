// The parts of the fleet that this build has: all of them with the package trait Fleet, none without it.

internal import ArgumentParser
#if Fleet
internal import StallClickHouse
#endif

enum FleetParts {
    #if Fleet
    static let openers = [StoreOpener(scheme: "clickhouse://") { try RemoteCluster($0) }]
    static let push: any ParsableCommand.Type = Push.self
    #else
    static let openers: [StoreOpener] = []
    static let push: any ParsableCommand.Type = MissingPush.self
    #endif
}

/// `push` in a build without it.
struct MissingPush: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push",
        abstract: "Send what is new of stores to a collector; not in this build.")

    @Argument(parsing: .captureForPassthrough, help: .hidden)
    var words: [String] = []

    func run() throws { throw MissingFleet(what: "push") }
}

/// This build lacks a part of the fleet.
struct MissingFleet: Error, Equatable, CustomStringConvertible {
    var what: String

    var description: String {
        "\(what) is not in this build of stallctl: install the Debian package, or build it with "
            + "'swift build -c release --traits Fleet --product stallctl'"
    }
}
