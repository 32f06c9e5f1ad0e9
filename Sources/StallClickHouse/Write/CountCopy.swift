// The counts of stores besides reports: watched time, stalls without a report, losses. Each to the shard of its source.

internal import StallArchive
internal import StallModel
internal import StallStore

/// Copies the tables of counts.
struct CountCopy {
    private let connection: Connection
    private let outbox: Outbox
    private let keys: StoredKeys

    init(_ connection: Connection, _ outbox: Outbox, _ keys: StoredKeys) {
        (self.connection, self.outbox, self.keys) = (connection, outbox, keys)
    }

    mutating func run(_ summary: inout StoreCopy.Summary) throws {
        try copyWatchedLoops(&summary)
        try copyApps(&summary)
        try copyExposure(&summary)
        try copy(
            """
            select source, loop, place, reason, stall_count, total_ns, revision from suppression
            """,
            to: "suppression_local (source, loop, place, reason, stall_count, total_ns, revision)",
            &summary
        ) { row, out in
            out.add(try loop(row, at: 1).hash)
            for column: CInt in 2...6 { out.add(try row.integer(at: column)) }
        }
        try copy(
            "select source, run, reason, report_count, revision from loss",
            to: "loss_local (source, run, reason, report_count, revision)", &summary
        ) { row, out in
            guard let run = keys.runs[try row.integer(at: 1)] else {
                throw row.damage("a loss of no run")
            }
            out.add(run)
            for column: CInt in 2...4 { out.add(try row.integer(at: column)) }
        }
    }

    /// Sends a row for each row of a query, whose first column is the source.
    private func copy(
        _ query: String, to table: ClickHouseQuery, _ summary: inout StoreCopy.Summary,
        _ fill: (Statement, inout TabSeparatedWriter) throws -> Void
    ) throws {
        var sharded = ShardedRows(table, isEverywhere: false, outbox)
        let rows = try connection.prepare(query)
        while try rows.step() {
            let source = try source(rows, at: 0)
            try sharded.add(of: source) { out in
                out.add(source)
                try fill(rows, &out)
            }
        }
        try sharded.flush()
        summary.add(sharded)
    }

    /// Whole on every shard: reports are sharded by their ids, and their queries need whether their loops are watched.
    private func copyWatchedLoops(_ summary: inout StoreCopy.Summary) throws {
        var sharded = ShardedRows("watched_loop (source, loop)", isEverywhere: true, outbox)
        let rows = try connection.prepare("select source, loop from watched_loop")
        while try rows.step() {
            try sharded.add { out in
                out.add(try source(rows, at: 0))
                out.add(try loop(rows, at: 1).hash)
            }
        }
        try sharded.flush()
        summary.add(sharded)
    }

    /// Whole on every shard.
    private func copyApps(_ summary: inout StoreCopy.Summary) throws {
        var sharded = ShardedRows("source_app (source, app)", isEverywhere: true, outbox)
        let rows = try connection.prepare(
            """
            with used (source, run) as (
                select source, run from run_source
                union select source, run from loss
                union select source, loop.run from exposure join loop on loop.id = exposure.loop
                union select source, loop.run from suppression join loop on loop.id = suppression.loop)
            select distinct used.source, app from used join process_run on process_run.id = used.run
            """)
        while try rows.step() {
            try sharded.add { out in
                out.add(try source(rows, at: 0))
                out.add(rows.text(at: 1))
            }
        }
        try sharded.flush()
        summary.add(sharded)
    }

    private func copyExposure(_ summary: inout StoreCopy.Summary) throws {
        try copy(
            """
            select source, revision, loop, start_us, watched_ns, busy_ns, ready_delay_ns,
                micro_stall_count, micro_stall_ns, iteration_count, lengths
            from exposure
            """,
            to: """
                exposure_local (source, revision, loop, app, version, host, loop_name, day, start_us,
                    watched_ns, busy_ns, ready_delay_ns, micro_stall_count, micro_stall_ns,
                    iteration_count, length_bucket, length_count)
                """, &summary
        ) { row, out in
            let loop = try loop(row, at: 2)
            let start = try row.integer(at: 3)
            out.add(try row.integer(at: 1))
            out.add(loop.hash)
            for name in [loop.app, loop.version, loop.host, loop.name] { out.add(name) }
            out.add(start.day)
            out.add(start)
            for column: CInt in 4...9 { out.add(try row.integer(at: column)) }
            guard let lengths = LengthHistogram(encoded: row.blob(at: 10)) else {
                throw row.damage("the lengths of an exposure are no histogram")
            }
            let counts = lengths.counts.sorted { $0.key < $1.key }
            out.add(list: counts.map { Int64($0.key) })
            out.add(list: counts.map { Int64($0.value) })
        }
    }

    private func source(_ row: Statement, at column: CInt) throws -> UniqueID {
        guard let source = keys.sources[try row.integer(at: column)] else {
            throw row.damage("a row of no source")
        }
        return source
    }

    private func loop(_ row: Statement, at column: CInt) throws -> StoredKeys.Loop {
        guard let loop = keys.loops[try row.integer(at: column)] else {
            throw row.damage("a row of no loop")
        }
        return loop
    }
}
