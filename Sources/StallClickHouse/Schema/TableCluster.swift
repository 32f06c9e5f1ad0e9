// Whether the tables are spread over the cluster that the address names. Writing rows of one shard to another, or to
// tables of other servers, would count reports twice.

/// The cluster that a database's tables were made for.
enum TableCluster {
    /// One row of one column where there are tables: the engine of the one that all reports are read from.
    static let question: ClickHouseQuery = """
        select engine_full from system.tables where database = currentDatabase() and name = 'report'
        """

    /// - Parameter engine: `Distributed(stalls, ...`, with quotes in later versions, or `Merge(...`.
    static func check(_ engine: String, _ address: ClickHouseAddress) throws(ClickHouseError) {
        let cluster = cluster(of: engine)
        guard cluster != address.cluster else { return }
        let right = cluster.map {
            "of the cluster \($0): expected cluster=\(ClickHouseAddress.encoded($0))"
        }
        throw .badAddress(
            detail: "the tables of \(address.database) are "
                + (right ?? "of one server: expected no cluster="))
    }

    private static func cluster(of engine: String) -> String? {
        let opening = "Distributed("
        guard engine.hasPrefix(opening) else { return nil }
        let name = engine.dropFirst(opening.count).prefix { $0 != "," && $0 != ")" }
        return String(name.filter { $0 != "'" && $0 != "`" })
    }
}
