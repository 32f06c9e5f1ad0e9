// Copies a central store's rows to a cluster. Everything hard about importing reports was done when they came into that
// store: limits, names, groups, identities. Here only the keys change: row numbers become hashes that mean the same
// everywhere, and a shard is chosen.
//
//     what reports share, to every shard -> days are marked -> reports and counts, to their shards
//         -> positions of the sources -> totals of the marked days
//
// The key of a row identifies it, so that a copy that was interrupted anywhere is made again from its beginning.

internal import StallArchive
package import StallModel
package import StallStore

/// One copy of a store to a cluster.
package struct StoreCopy {
    private let connection: Connection
    private let cluster: ClickHouseCluster
    private let clock: () -> UnixTime

    /// The rows that were sent, including those that the cluster already has.
    package struct Summary: Hashable, Sendable {
        package var reportCount = 0
        package var rowCount = 0
        package var byteCount = 0
        /// The hashes of locations that no stack of the store shows: their names came later than the reports.
        var latePlaces: [Int64] = []
        /// The days whose totals are to be added up again.
        package var days: Set<Int64> = []

        package init() {}
    }

    /// - Parameter connection: A central store of the newest schema, which does not change meanwhile.
    package init(
        _ connection: Connection, to cluster: ClickHouseCluster,
        clock: @escaping () -> UnixTime = UnixTime.now
    ) {
        (self.connection, self.cluster, self.clock) = (connection, cluster, clock)
    }

    /// Copies all rows and the positions of their sources; the totals of the days are the caller's to renew.
    ///
    /// - Parameter isOfNewRules: The cluster's groups are being replaced.
    package func run(isOfNewRules: Bool = false) throws -> Summary {
        // One snapshot; a transaction would turn a shard's error into an error of SQLite.
        try connection.savepoint {
            var summary = Summary()
            let pruned = isOfNewRules ? nil : try expectSameRules()
            let outbox = Outbox(cluster)
            var dimensions = DimensionCopy(connection, outbox)
            try dimensions.run(&summary)
            // Reports of days that were pruned do not come back: their totals could not be added up again.
            summary.days = try days().filter { $0 > pruned ?? .min }
            try RollUpDays(cluster).mark(summary.days, at: clock(), outbox)
            try outbox.flush()
            var reports = ReportCopy(connection, outbox, dimensions.keys, behind: pruned)
            try reports.run(&summary)
            var counts = CountCopy(connection, outbox, dimensions.keys)
            try counts.run(&summary)
            try outbox.flush()
            // Last: a reader of a position needs nothing before it any more.
            try SourcePositions(cluster).write(of: connection, outbox, &summary)
            try outbox.flush()
            summary.byteCount = outbox.byteCount
            return summary
        }
    }

    /// The days that any report of the store began on.
    private func days() throws -> Set<Int64> {
        var days: Set<Int64> = []
        let rows = try connection.prepare("select distinct day from report_day")
        while try rows.step() { days.insert(try rows.integer()) }
        return days
    }

    /// Groups of two sets of rules are not comparable. The first copy determines the cluster's rules.
    ///
    /// - Returns: The last day of which reports were pruned.
    private func expectSameRules() throws -> Int64? {
        let own = try connection.prepare("select rules_hash from grouping").found()
        guard let own else { return nil }
        if let known = try GroupingRow(cluster.server) {
            guard known.rulesHash == own else {
                throw ClickHouseError.otherRules(
                    store: cluster.server.name, hash: known.rulesHash)
            }
            return known.prunedBefore?.microseconds.day
        }
        for shard in cluster.shards {
            try shard.execute(
                """
                insert into grouping (id, rules_hash, pruned_before_us, version)
                values (1, \(own), 0, \(clock().microseconds))
                """)
        }
        return nil
    }
}
