// The loops that recorded how long they were watched: only their stalls have rates.

internal import StallModel
internal import StallQuery
package import StallStore

/// The loops of each source that have watched time.
package struct WatchedLoops {
    private struct Key: Hashable {
        var source, loop: Int64
    }

    /// Almost every loop is of one source, by number. Answers ask for the loop of each of millions of reports.
    private var loops = KeyNumbers()
    private var sources: [Int64] = []
    /// Of the others.
    private var keys: Set<Key> = []

    /// A central store notes them, also of watched time that was deleted since; in an agent's store they are derived
    /// from the watched time itself.
    package init(_ connection: Connection) throws {
        let table = try connection.isGrouped ? "watched_loop" : "exposure"
        let rows = try connection.prepare("select distinct source, loop from \(table)")
        while try rows.step() {
            let (source, loop) = try (rows.integer(), rows.integer())
            if Int(loops.add(loop)) == sources.count {
                sources.append(source)
            } else {
                keys.insert(Key(source: source, loop: loop))
            }
        }
    }

    func contains(source: Int64, loop: Int64) -> Bool {
        guard let number = loops.number(of: loop) else { return false }
        return sources[Int(number)] == source
            || !keys.isEmpty && keys.contains(Key(source: source, loop: loop))
    }

    package func contains(_ report: CountedReport) -> Bool {
        contains(source: report.entry.source, loop: report.loop)
    }
}
