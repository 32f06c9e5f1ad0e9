// The one row with the rules by which reports are grouped, and the time before which they were pruned.

package import StallModel

/// The state of a cluster's groups.
package struct GroupingRow: Hashable, Sendable {
    package var rulesHash: Int64
    /// Stalls that began before it exist in roll-ups only.
    package var prunedBefore: UnixTime?

    /// Nil where no report was ever taken.
    package init?(_ server: ClickHouseServer) throws(ClickHouseError) {
        var rows = try server.rows(
            "select rules_hash, pruned_before_us from grouping final", columnCount: 2)
        guard try rows.step() else { return nil }
        self.init(rulesHash: try rows.integer(), pruned_us: try rows.integer())
    }

    /// - Parameter pruned_us: 0 where nothing was pruned, as the row has it.
    init(rulesHash: Int64, pruned_us: Int64 = 0) {
        self.rulesHash = rulesHash
        prunedBefore = pruned_us == 0 ? nil : UnixTime(microseconds: pruned_us)
    }
}
