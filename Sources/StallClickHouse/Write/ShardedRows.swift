// Rows on their way to the shards, collected until an insert is worth sending.

internal import StallModel

/// The rows of one table, by shard.
struct ShardedRows {
    private let table: ClickHouseQuery
    private let outbox: Outbox
    private var buffers: [TabSeparatedWriter]
    /// Rows that every shard gets are collected once.
    private let isEverywhere: Bool
    private(set) var rowCount = 0

    /// - Parameters:
    ///   - table: With its columns: `report_local (id, start_us)`.
    ///   - isEverywhere: Every shard gets every row.
    init(_ table: ClickHouseQuery, isEverywhere: Bool, _ outbox: Outbox) {
        (self.table, self.outbox, self.isEverywhere) = (table, outbox, isEverywhere)
        let count = isEverywhere ? 1 : outbox.cluster.shards.count
        buffers = Array(repeating: TabSeparatedWriter(), count: count)
    }

    /// Adds a row; sends the collected rows when they are enough.
    ///
    /// - Parameter owner: The id that decides the shard; nil for a row of every shard.
    mutating func add(
        of owner: UniqueID? = nil, _ fill: (inout TabSeparatedWriter) throws -> Void
    ) throws {
        let index = owner.map { outbox.cluster.shard(of: $0) } ?? 0
        try fill(&buffers[index])
        buffers[index].endRow()
        rowCount += 1
        // The shards' shares are about equal: all of them go, so that no shard waits for another.
        if buffers[index].bytes.count >= outbox.bytesPerInsert { try flush() }
    }

    /// Hands the rest over. It is in once the outbox is flushed.
    mutating func flush() throws(ClickHouseError) {
        for index in buffers.indices where buffers[index].rowCount > 0 {
            let shards =
                isEverywhere ? outbox.cluster.shards[...] : outbox.cluster.shards[index...index]
            for shard in shards { try outbox.add(buffers[index].bytes, into: table, of: shard) }
            buffers[index].removeAll()
        }
    }
}
