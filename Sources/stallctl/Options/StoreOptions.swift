// The store of a command.

internal import ArgumentParser
internal import Foundation
internal import StallIngest
internal import StallModel
internal import StallQuery

struct StoreOptions: ParsableArguments {
    @Option(
        name: .customLong("store"),
        help: ArgumentHelp(
            "The store: a file, or clickhouse://user@host:port/database?cluster=name. Default: $STALLCTL_STORE, the settings file's, ./stalls.sqlite, or the one in the state directory.",
            valueName: "path"),
        completion: .file(extensions: ["sqlite"]))
    var stores: [String] = []

    /// Nil for the default.
    var store: String? {
        get { stores.first }
        set { stores = newValue.map { [$0] } ?? [] }
    }

    /// An answer for one of several stores would look like one for all of them.
    func validate() throws {
        try Self.checkPaths(stores)
        guard stores.count < 2 else {
            throw ValidationError(
                "This command needs one --store; there were \(stores.count). top, trend, diff and status take several; "
                    + "'stallctl ingest' puts them into one.")
        }
    }

    /// An empty path is that of a variable that is not set.
    static func checkPaths(_ paths: [String]) throws {
        guard paths.contains("") else { return }
        throw ValidationError("--store is empty; expected the path of a store.")
    }

    /// The store's path, whether it exists or not.
    var path: String {
        Self.path(
            option: store, environment: ProcessInfo.processInfo.environment,
            setting: UserSettings.current.store,
            exists: FileManager.default.fileExists(atPath:))
    }

    /// The store's path for a command that may create it; creates the state directory if it is used.
    ///
    /// **Source:** XDG Base Directory Specification: a missing directory is created with mode 0700.
    func pathToCreate() -> String {
        let path = Self.path(
            option: store, environment: ProcessInfo.processInfo.environment,
            setting: UserSettings.current.store,
            exists: { $0 != Self.machinePath && FileManager.default.fileExists(atPath: $0) })
        if path == Self.statePath(ProcessInfo.processInfo.environment) {
            // If this fails, opening the store reports why.
            try? FileManager.default.createDirectory(
                atPath: String(path[..<path.lastIndex(of: "/")!]),
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        }
        return path
    }

    /// Opens the store for reading.
    ///
    /// - Parameter question: The first question, where that is known.
    func open(expecting question: AggregateQuestion? = nil) throws -> any QueryableStore {
        let (path, environment) = (path, ProcessInfo.processInfo.environment)
        if store == nil, path == Self.statePath(environment),
            !FileManager.default.fileExists(atPath: path)
        {
            throw NoStore(statePath: path)
        }
        return try Self.open(path: path, expecting: question)
    }

    /// Fails for a cluster: some commands need a file.
    func expectFile(for command: String) throws {
        guard let remote = try StoreOpener.remote(path) else { return }
        throw NotAFile(
            store: remote.name, reason: "a cluster; \(command) needs a store that is a file")
    }

    /// Opens a store for reading.
    static func open(
        path: String, expecting question: AggregateQuestion? = nil
    ) throws -> any QueryableStore {
        guard let remote = try StoreOpener.remote(path) else {
            return try UnfinishedNames.open(path: path)
        }
        let (store, missing) = try remote.open(expecting: question)
        PartialAnswer.note(missing, of: store.path)
        return store
    }

    /// Where the Debian package's ingest job stores the reports of all agents of this machine.
    static let machinePath = "/var/lib/stallwatch/central.sqlite"

    /// The first of: the option, `STALLCTL_STORE`, the user's setting, `./stalls.sqlite` if it exists, the store in the
    /// state directory if it exists, and the machine's. If none exists, the one in the state directory.
    static func path(
        option: String?, environment: [String: String], setting: String? = nil,
        exists: (String) -> Bool
    ) -> String {
        if let option { return option }
        if let path = environment["STALLCTL_STORE"], !path.isEmpty { return path }
        if let setting { return setting }
        if exists("stalls.sqlite") { return "stalls.sqlite" }
        let state = statePath(environment)
        return !exists(state) && exists(machinePath) ? machinePath : state
    }

    private static func statePath(_ environment: [String: String]) -> String {
        UserDirectories.state(environment) + "/stallwatch/stalls.sqlite"
    }
}

/// No store was given, and none of the default paths exists.
private struct NoStore: Error, CustomStringConvertible {
    var statePath: String

    var description: String {
        "there is no store: $STALLCTL_STORE is not set, and none of ./stalls.sqlite, \(statePath) and "
            + "\(StoreOptions.machinePath) exists; name one with --store"
    }
}
