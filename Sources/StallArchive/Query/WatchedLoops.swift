// The loops that recorded how long they were watched: only their stalls have rates.

internal import StallModel
package import StallStore

/// The loops of each source that have watched time.
package struct WatchedLoops {
    private struct Key: Hashable {
        var source, loop: Int64
    }

    private var keys: Set<Key> = []

    /// A central store notes them, also of watched time that was deleted since; in an agent's store they are derived
    /// from the watched time itself.
    package init(_ connection: Connection) throws {
        let table = try connection.isGrouped ? "watched_loop" : "exposure"
        let rows = try connection.prepare("select distinct source, loop from \(table)")
        while try rows.step() {
            keys.insert(Key(source: try rows.integer(), loop: try rows.integer()))
        }
    }

    func contains(source: Int64, loop: Int64) -> Bool {
        keys.contains(Key(source: source, loop: loop))
    }

    package func contains(_ report: CountedReport) -> Bool {
        contains(source: report.entry.source, loop: report.loop)
    }
}
