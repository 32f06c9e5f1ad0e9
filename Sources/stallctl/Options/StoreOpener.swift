// Stores at addresses: a command does not know which kinds of them there are.

internal import StallIngest

/// Opens the stores of one kind.
struct StoreOpener: Sendable {
    /// The beginning of their addresses.
    var scheme: String
    var open: @Sendable (_ address: String) throws -> any RemoteStore
}

extension StoreOpener {
    /// The beginnings of all addresses, whatever this build can open.
    private static let schemes = ["clickhouse://"]

    /// Whether a store's name is an address, and not a path.
    static func isAddress(_ store: String) -> Bool { schemes.contains(where: store.hasPrefix) }

    /// The store at an address, which nothing has been sent to; nil for a path.
    static func remote(
        _ store: String, openers: [StoreOpener] = FleetParts.openers
    ) throws -> (any RemoteStore)? {
        guard isAddress(store) else { return nil }
        guard let opener = openers.first(where: { store.hasPrefix($0.scheme) }) else {
            throw MissingFleet(what: "a store at \(store)")
        }
        return try opener.open(store)
    }
}

/// A command that needs a file was given the address of a cluster.
struct NotAFile: Error, CustomStringConvertible {
    var store: String
    var reason: String

    var description: String { "\(store): \(reason)" }
}
