// Rows on their way to the shards, collected until a request is worth sending.

internal import StallModel

/// The rows of one table, by shard.
struct ShardedRows {
    private let table: ClickHouseQuery
    private let cluster: ClickHouseCluster
    private var buffers: [TabSeparatedWriter]
    /// Rows that every shard gets are collected once.
    private let isEverywhere: Bool
    private(set) var rowCount = 0
    private(set) var byteCount = 0

    /// A request of so many bytes takes a good part of a second. More gains nothing, and is memory here and there.
    static let bytesPerRequest = 24 << 20

    /// - Parameters:
    ///   - table: With its columns: `report_local (id, start_us)`.
    ///   - isEverywhere: Every shard gets every row.
    init(_ table: ClickHouseQuery, isEverywhere: Bool, _ cluster: ClickHouseCluster) {
        (self.table, self.cluster, self.isEverywhere) = (table, cluster, isEverywhere)
        let count = isEverywhere ? 1 : cluster.shards.count
        buffers = Array(repeating: TabSeparatedWriter(), count: count)
    }

    /// Adds a row; sends what there is when that is enough.
    ///
    /// - Parameter owner: The id that decides the shard; nil for a row of every shard.
    mutating func add(
        of owner: UniqueID? = nil, _ fill: (inout TabSeparatedWriter) throws -> Void
    ) throws {
        let index = owner.map { cluster.shard(of: $0) } ?? 0
        try fill(&buffers[index])
        buffers[index].endRow()
        rowCount += 1
        if buffers[index].bytes.count >= Self.bytesPerRequest { try send(index) }
    }

    /// Sends the rest.
    mutating func flush() throws(ClickHouseError) {
        for index in buffers.indices where buffers[index].rowCount > 0 { try send(index) }
    }

    private mutating func send(_ index: Int) throws(ClickHouseError) {
        let shards = isEverywhere ? cluster.shards[...] : cluster.shards[index...index]
        for shard in shards {
            try shard.insert(into: table, buffers[index].bytes)
            byteCount += buffers[index].bytes.count
        }
        buffers[index].removeAll()
    }
}
