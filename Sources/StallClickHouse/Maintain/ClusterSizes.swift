// How much of the shards' disks the reports of each day take.

internal import StallModel
internal import StallStore

/// The sizes of the days that can be deleted, oldest first.
struct ClusterSizes {
    private let cluster: ClickHouseCluster

    init(_ cluster: ClickHouseCluster) { self.cluster = cluster }

    /// The first day whose reports fit, by the share of their rows in their partitions; nil where all do.
    ///
    /// - Throws: Where the other tables alone are larger: then nothing is to be deleted for it.
    func firstDay(toKeep bytes: Int64) throws(ClickHouseError) -> Int64? {
        let excess = try max(0, cluster.byteCount()) - max(0, bytes)
        guard excess > 0 else { return nil }
        let days = try bytesByDay()
        let sum = days.reduce(Int64(0)) { $0.addingSaturated($1.bytes) }
        guard excess <= sum else {
            throw .notSupported(
                store: cluster.server.name,
                what: "its tables take \(excess - sum + max(0, bytes)) bytes without any reports; "
                    + "expected a size above that")
        }
        var freed: Int64 = 0
        for (day, bytes) in days {
            freed = freed.addingSaturated(bytes)
            if freed >= excess { return day + 1 }
        }
        return nil
    }

    private func bytesByDay() throws(ClickHouseError) -> [(day: Int64, bytes: Int64)] {
        var sums: [Int64: Int64] = [:]
        for shard in cluster.shards {
            var spans: [Int64: (rows: Int64, bytes: Int64)] = [:]
            var rows = try shard.rows(
                """
                select toInt64(partition), toInt64(sum(rows)), toInt64(sum(bytes_on_disk)) from system.parts
                where database = \(shard.address.database) and table = 'report_local' and active
                group by partition
                """, columnCount: 3)
            while try rows.step() {
                let span: Int64 = try rows.integer()
                spans[span] = (try rows.integer(), try rows.integer())
            }
            rows = try shard.rows(
                "select day, count() from report_local group by day", columnCount: 2)
            while try rows.step() {
                let (day, count) = (try rows.day(), try rows.integer())
                guard let span = spans[RollUpDays.span(day)], span.rows > 0 else { continue }
                let part = Double(count) / Double(span.rows) * Double(span.bytes)
                sums[day] = (sums[day] ?? 0).addingSaturated(
                    Int64(min(max(part.rounded(.up), 0), 9e15)))
            }
        }
        return sums.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}
