// Reports one by one. Only keys are sorted, of a few bytes each, which SQLite moves to a file when there are many; the
// rows are read by their keys and forgotten.

package import StallModel
package import StallQuery
package import StallStore

extension ReportStore {
    /// The reports that the filter selects, with samples and frames, one by one from one snapshot.
    package func forEachReport(
        _ filter: ReportFilter, in order: CursorOrder, limit: Int?,
        _ body: (StallReport, ReportOrigin, any StoreLookup) throws -> Void
    ) throws {
        try walk { connection in
            let reader = try ReportReader(connection)
            let lookup = try SnapshotLookup(connection, reader.stacks)
            let stores = try connection.storesBySource()
            let rows = try connection.prepare(
                "\(ReportReader.query) where report.source = ? and report.seq = ?")
            try forEachKey(connection, filter, order, limit) { source, seq in
                try rows.bind(source, seq)
                guard try rows.step() else { return }
                let (report, revision) = try reader.report(rows)
                guard let store = stores[source] else { throw rows.damage("a report of no source") }
                let origin = ReportOrigin(store: store, seq: seq, revision: revision)
                rows.reset()
                try body(report, origin, lookup)
            }
        }
    }

    /// The stalls that the filter selects, with their stacks as numbers, one by one from one snapshot.
    package func forEachStall(
        _ filter: ReportFilter, in order: CursorOrder, limit: Int?,
        _ body: (StallTrace, any StoreLookup) throws -> Void
    ) throws {
        var filter = filter
        filter.verdicts = filter.verdicts ?? [.stalled]
        try walk { [filter] connection in
            let lookup = try SnapshotLookup(connection, try StackReader(connection))
            let loops = try SummaryReader(connection)
            let evidence = try EvidenceReader(connection)
            let rows = try connection.prepare(
                """
                select report.cause, report.cause_confidence, report.cause_detail, report.evidence,
                    report.evidence_numbers, report.cause_permille, report.loop, report.duration_ns,
                    report.id, report.start_us, report.state, signature.hash, report.samples,
                    report.threads
                from report left join signature on signature.id = report.signature
                where report.source = ? and report.seq = ?
                """)
            try forEachKey(connection, filter, order, limit) { source, seq in
                try rows.bind(source, seq)
                guard try rows.step() else { return }
                let trace = try Self.trace(rows, loops, evidence)
                rows.reset()
                try body(trace, lookup)
            }
        }
    }

    /// When the first and the last of the stalls that the filter selects began; nil without any.
    package func timeSpan(
        _ filter: ReportFilter
    ) throws(StoreError) -> (first: UnixTime, last: UnixTime)? {
        var filter = filter
        filter.verdicts = filter.verdicts ?? [.stalled]
        return try answer { [filter] connection in
            let condition = Condition(filter)
            let rows = try connection.prepare(
                """
                select min(report.start_us), max(report.start_us)
                from \(connection.reports(filter)) where \(condition.sql)
                """)
            try condition.bind(to: rows)
            guard try rows.step(), !rows.isNull(at: 0) else { return nil }
            defer { rows.reset() }
            return (try rows.time(at: 0), try rows.time(at: 1))
        }
    }

    private static func trace(
        _ rows: Statement, _ reader: SummaryReader, _ evidence: EvidenceReader
    ) throws -> StallTrace {
        let cause = try evidence.cause(rows, at: 0, evidence: 3)
        rows.go(to: 6)
        guard let loop = reader.loops[try rows.integer()] else {
            throw rows.damage("a report of no loop")
        }
        let duration = try rows.duration_ns()
        return StallTrace(
            id: try rows.uniqueID(), run: reader.runs[loop.run], loop: loop.name,
            start: try rows.time(),
            duration: .nanoseconds(duration), state: try rows.value(), cause: cause,
            group: rows.optionalInteger(),
            stacks: try SummaryReader.stacks(rows, in: duration),
            threads: try rows.threads().map {
                TracedThread(
                    thread: ThreadID(rawValue: $0.thread), name: $0.name, role: $0.role,
                    stack: $0.stack)
            })
    }

    /// Runs `body` on one snapshot. An error of the caller's part of it is rethrown as it is: it is no failure of the
    /// store.
    func walk(_ body: (Connection) throws -> Void) throws {
        var failure: (any Error)?
        try answer { connection in
            do { try body(connection) } catch { failure = error }
        }
        if let failure { throw failure as? StoreError ?? failure }
    }
}

/// The keys of the reports that a filter selects, in an order.
private func forEachKey(
    _ connection: Connection, _ filter: ReportFilter, _ order: CursorOrder, _ limit: Int?,
    _ body: (_ source: Int64, _ seq: Int64) throws -> Void
) throws {
    let condition = Condition(filter)
    // The numbers of sources and loops depend on the order of ingest. `cross`: a source's reports are in order already.
    func keys(of table: String, where condition: String, _ rest: String = "") -> String {
        let (from, clause) =
            switch order {
            case .stored:
                (
                    "(select id as owner_id, store as owner_store from source) as owner cross join \(table)",
                    "and report.source = owner_id order by owner_store, report.seq"
                )
            case .newestFirst: (table, "order by report.start_us desc, report.id desc")
            case .byLoop:
                (
                    """
                    \(table) left join (select loop.id as watched_loop, dense_rank() over (
                        order by process_run.started_us, process_run.uuid, loop.name) as place
                        from loop join process_run on process_run.id = loop.run
                    ) as watched on watched_loop = report.loop
                    """, "order by place, report.start_us, report.id"
                )
            }
        return "select report.source, report.seq from \(from) where \(condition) \(clause) \(rest)"
    }
    let table = try connection.reports(filter)
    // The newest are meant, whatever the order.
    let newest = """
        (report.source, report.seq) in (select report.source, report.seq from \(table)
            where \(condition.sql) order by report.start_us desc, report.id desc limit \(limit ?? -1))
        """
    let keys =
        limit == nil || order == .newestFirst
        ? keys(of: table, where: condition.sql, "limit \(limit ?? -1)")
        : keys(of: "report", where: newest)
    let rows = try connection.prepare(keys)
    try condition.bind(to: rows)
    while try rows.step() { try body(rows.integer(), rows.integer()) }
}

extension Connection {
    /// The stores that reports were first written to, by their numbers.
    func storesBySource() throws -> [Int64: UniqueID] {
        let rows = try prepare("select id, store from source")
        var stores: [Int64: UniqueID] = [:]
        while try rows.step() {
            let id = try rows.integer()
            stores[id] = try rows.uniqueID()
        }
        return stores
    }
}

/// Looks things up on the snapshot that a cursor walks over.
private final class SnapshotLookup: StoreLookup {
    private let stacks: StackReader
    private let findImages: Statement
    /// Of the run that was asked for last: reports of one run mostly follow each other.
    private var last: (run: UniqueID, images: [Image])?

    init(_ connection: Connection, _ stacks: StackReader) throws {
        self.stacks = stacks
        findImages = try connection.prepare(imagesOfRun)
    }

    func frames(ofStack number: Int64) throws -> [Frame] {
        try stacks.frames(ofStack: number) ?? []
    }

    func images(ofRun run: UniqueID) throws -> [Image] {
        if let last, last.run == run { return last.images }
        try findImages.bind(run.bytes)
        let images = try readImages(findImages)
        last = (run, images)
        return images
    }
}
