// The stores of a command that adds up the answers of several.

internal import ArgumentParser
internal import StallArchive
internal import StallIngest
internal import StallModel
internal import StallQuery
internal import StallStore

struct SeveralStoresOptions: ParsableArguments {
    @Option(
        name: .customLong("store"),
        help: ArgumentHelp(
            "The store. Repeat it to add up several with different reports. Default: $STALLCTL_STORE, the settings file's, ./stalls.sqlite, or the one in the state directory.",
            valueName: "path"),
        completion: .file(extensions: ["sqlite"]))
    var stores: [String] = []

    func validate() throws { try StoreOptions.checkPaths(stores) }

    /// As for a command that reads one store; the first of several.
    var first: StoreOptions {
        var options = StoreOptions()
        options.store = stores.first
        return options
    }

    /// Whether they exist or not; at least one.
    var paths: [String] { stores.isEmpty ? [first.path] : stores }

    /// The store of several that has a report; nil for one store, and if none has it any more.
    func path(ofReport idPrefix: String?) throws -> String? {
        guard stores.count > 1, let idPrefix else { return nil }
        return try stores.first { path in
            do {
                return try !ReportStore.open(path: path).reports(idPrefix: idPrefix).isEmpty
            } catch StoreError.unknownReport {
                return false
            }
        }
    }

    func open(expecting question: AggregateQuestion? = nil) throws -> any QueryableStore {
        stores.count > 1
            ? try Self.open(paths: stores) : try first.open(expecting: question)
    }

    /// Opens stores for reading.
    static func open(paths: [String]) throws -> any QueryableStore {
        guard paths.count > 1 else { return try StoreOptions.open(path: paths[0]) }
        for path in paths {
            guard let remote = try StoreOpener.remote(path) else { continue }
            throw NotAFile(
                store: remote.name,
                reason: "a cluster, which has shards of its own; ask it without another --store")
        }
        return try MergedStore(paths: paths)
    }

    /// For what shows single reports, too.
    func expectOneStore(for option: String) throws {
        guard stores.count < 2 else {
            throw ValidationError("\(option) needs one store; there were \(stores.count).")
        }
    }
}
