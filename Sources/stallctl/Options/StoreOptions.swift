// Which store a command speaks of.

internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import StallModel
internal import StallArchive

struct StoreOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The store. Default: $STALLCTL_STORE, ./stalls.sqlite, or the one in the state directory.",
            valueName: "path"),
        completion: .file(extensions: ["sqlite"]))
    var store: String?

    /// The store's path, whether it exists or not.
    var path: String {
        Self.path(
            option: store, environment: ProcessInfo.processInfo.environment,
            exists: FileManager.default.fileExists(atPath:))
    }

    /// The store's path for a command that may create it: the state folder is made when it is there.
    ///
    /// **Source:** XDG Base Directory Specification: a missing folder is made, for its owner alone.
    func pathToCreate() -> String {
        let path = Self.path(
            option: store, environment: ProcessInfo.processInfo.environment,
            exists: { $0 != Self.machinePath && FileManager.default.fileExists(atPath: $0) })
        if path == Self.statePath(ProcessInfo.processInfo.environment) {
            // When this fails, opening the store says why, in one line.
            try? FileManager.default.createDirectory(
                atPath: String(path[..<path.lastIndex(of: "/")!]),
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        }
        return path
    }

    /// Opens the store for reading.
    func open() throws -> any QueryableStore {
        let (path, environment) = (path, ProcessInfo.processInfo.environment)
        if store == nil, path == Self.statePath(environment),
            !FileManager.default.fileExists(atPath: path)
        {
            throw NoStore(statePath: path)
        }
        return try Self.open(path: path)
    }

    /// Opens a store for reading.
    static func open(path: String) throws -> any QueryableStore {
        try ReportStore.open(path: path)
    }

    /// Where the job of the Debian package keeps the reports of all agents of this machine.
    static let machinePath = "/var/lib/stallwatch/central.sqlite"

    /// The first of: the option, `STALLCTL_STORE`, `./stalls.sqlite` if it exists, the store in the state folder of the
    /// XDG base directory specification if it exists, and the machine's. Where there is none, the one in the state folder.
    static func path(
        option: String?, environment: [String: String], exists: (String) -> Bool
    ) -> String {
        if let option { return option }
        if let path = environment["STALLCTL_STORE"], !path.isEmpty { return path }
        if exists("stalls.sqlite") { return "stalls.sqlite" }
        let state = statePath(environment)
        return !exists(state) && exists(machinePath) ? machinePath : state
    }

    private static func statePath(_ environment: [String: String]) -> String {
        var state = environment["XDG_STATE_HOME"] ?? ""
        // The specification says to ignore relative paths.
        if !state.hasPrefix("/") { state = home(environment) + "/.local/state" }
        return state + "/stallwatch/stalls.sqlite"
    }

    /// `HOME`; without it, what the system knows of the user.
    private static func home(_ environment: [String: String]) -> String {
        if let home = environment["HOME"], home.hasPrefix("/") { return home }
        return getpwuid(getuid()).map { String(cString: $0.pointee.pw_dir) } ?? "/nonexistent"
    }
}

/// Nobody said which store, and there is none in any of the usual places.
private struct NoStore: Error, CustomStringConvertible {
    var statePath: String

    var description: String {
        "there is no store: $STALLCTL_STORE is not set, and neither ./stalls.sqlite nor \(statePath) exists; "
            + "name one with --store"
    }
}
