// A cluster as the store of a command.

package import StallIngest
package import StallQuery

/// The store at an address `clickhouse://user@host:port/database?cluster=name`.
package struct RemoteCluster: RemoteStore {
    private let address: ClickHouseAddress

    package init(_ address: String) throws(ClickHouseError) {
        self.address = try ClickHouseAddress(address)
    }

    package var name: String { address.description }

    private func cluster() throws(ClickHouseError) -> ClickHouseCluster {
        try ClickHouseCluster(ClickHouseServer(address))
    }

    package func open(
        expecting question: AggregateQuestion?
    ) throws -> (store: any QueryableStore, missing: [String]) {
        let store = try ClusterStore(ClickHouseServer(address), expecting: question)
        return (store, store.missingShards)
    }

    package func migrate() throws -> (from: Int, to: Int) {
        (try cluster().migrate(), ClickHouseMigration.newest)
    }

    package func rules() throws -> StoredRules? {
        let cluster = try cluster()
        try cluster.migrate()
        let texts = RulesTexts(cluster)
        guard let hash = try texts.hash() else { return nil }
        return StoredRules(hash: hash, text: try texts.text(of: hash))
    }

    package func ingest(
        grouper: any ReportGrouper, rules: String,
        _ fill: (_ path: String) throws -> IngestJobResult
    ) throws -> IngestJobResult {
        let cluster = try cluster()
        try cluster.migrate()
        try RulesTexts(cluster).keep(rules, of: grouper.rulesHash)
        return try StagedIngest(cluster).run(grouper: grouper, fill).answer
    }

    package func regroup(
        by grouper: any ReportGrouper, rules: String
    ) throws -> [RegroupedReports] {
        let cluster = try cluster()
        let texts = RulesTexts(cluster)
        // Nothing is created where there is no store.
        guard try texts.hash() != nil else { return [] }
        try cluster.migrate()
        // First: a writer that reads the new hash finds the text.
        try texts.keep(rules, of: grouper.rulesHash)
        return try ClusterRegroup(cluster).run(grouper)
    }

    package func prune(keeping retention: Retention) throws -> PruneSummary {
        let cluster = try cluster()
        let before = try cluster.byteCount()
        let deleted = try ClusterPrune(cluster).run(
            reportsSince: retention.reportsSince, bytes: retention.bytes,
            rollUpsSince: retention.rollUpsSince)
        return PruneSummary(
            deletedCount: deleted, bytesBefore: before, bytesAfter: try cluster.byteCount())
    }

    package func check(repairing: Bool) throws -> [String] {
        let cluster = try cluster()
        if repairing { try ClusterRepair(cluster).run() }
        return try ClusterCheck.faults(of: cluster)
    }
}
