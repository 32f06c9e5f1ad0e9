// The tables of which every shard has all rows.

internal import StallModel

/// A table that is whole on every shard.
struct SharedTable {
    let name: String
    /// The columns that must be the same of each row: its key, and those that distinguish an earlier version from a
    /// later one.
    let columns: ClickHouseQuery

    private init(_ name: String, _ columns: ClickHouseQuery) {
        (self.name, self.columns) = (name, columns)
    }

    /// How far each store was taken.
    static let source = SharedTable("source", "store, revision, line_count, last_seq, last_id")

    static let all: [SharedTable] = [
        source, SharedTable("source_app", "source, app"), SharedTable("process_run", "uuid"),
        SharedTable("loop", "hash"), SharedTable("watched_loop", "source, loop"),
        SharedTable("image", "hash"), SharedTable("image_load", "run, image"),
        SharedTable("location", "hash, detail"), SharedTable("function", "hash"),
        SharedTable("stack", "hash"), SharedTable("evidence_fact", "evidence, position"),
        SharedTable("signature", "key"), SharedTable("signature_frame", "signature, position"),
        SharedTable("grouping", "id, rules_hash, pruned_before_us"),
        SharedTable("rules_text", "rules_hash, text"),
        SharedTable("rollup_day", "day, generation, is_fresh"),
    ]

    /// Of each shard, how many rows it has and a sum that depends on all of them.
    func contents(
        _ cluster: ClickHouseCluster
    ) throws(ClickHouseError) -> [(count: Int64, sum: String)] {
        var contents: [(count: Int64, sum: String)] = []
        for shard in cluster.shards {
            var rows = try shard.rows(
                "select count(), sum(cityHash64(\(columns))) from \(name: name) final",
                columnCount: 2)
            guard try rows.step() else { continue }
            contents.append((try rows.integer(), try rows.text()))
        }
        return contents
    }

    /// The fault of the table; nil for none.
    func fault(_ cluster: ClickHouseCluster) throws(ClickHouseError) -> String? {
        let contents = try contents(cluster)
        guard Set(contents.map(\.sum)).count > 1 else { return nil }
        let counts = contents.map(\.count)
        return Set(counts).count > 1
            ? "\(name): the shards have \(counts) rows; expected the same on each"
            : "\(name): some of the \(counts[0]) rows differ between the shards"
    }
}
