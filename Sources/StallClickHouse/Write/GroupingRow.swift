// The one row that says by which rules reports are grouped, and what was pruned.

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
        rulesHash = try rows.integer(at: 0)
        let pruned: Int64 = try rows.integer(at: 1)
        prunedBefore = pruned == 0 ? nil : UnixTime(microseconds: pruned)
    }
}
