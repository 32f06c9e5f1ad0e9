// The texts of a cluster's grouping rules: the rules in force are the cluster's, whatever file a job has.

package import StallModel
internal import StallStore

/// The rules that the cluster was grouped by, now and before.
package struct RulesTexts {
    private let cluster: ClickHouseCluster

    package init(_ cluster: ClickHouseCluster) { self.cluster = cluster }

    /// The hash of the rules that the cluster is grouped by; nil for one without groups.
    package func hash() throws(ClickHouseError) -> Int64? {
        try GroupingRow(cluster.server)?.rulesHash
    }

    /// The text of the rules with a hash; nil where they came from an older stallctl.
    package func text(of hash: Int64) throws(ClickHouseError) -> String? {
        try Self.text(of: hash, on: cluster.server)
    }

    static func text(of hash: Int64, on server: ClickHouseServer) throws(ClickHouseError) -> String?
    {
        var rows = try server.rows(
            "select text from rules_text final where rules_hash = \(hash)", columnCount: 1)
        return try rows.step() ? try rows.text() : nil
    }

    /// Writes a text to every shard, unless it is there.
    package func keep(_ text: String, of hash: Int64, at time: UnixTime = .now()) throws {
        guard try self.text(of: hash) != text else { return }
        for shard in cluster.shards {
            try shard.execute(
                """
                insert into rules_text (rules_hash, text, version) values
                    (\(hash), \(text), \(time.microseconds))
                """)
        }
    }
}
