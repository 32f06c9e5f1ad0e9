// The reports, each to the shard of its id.

internal import StallArchive
internal import StallModel
internal import StallQuery
internal import StallStore

/// Copies the table of reports.
struct ReportCopy {
    private let connection: Connection
    private let outbox: Outbox
    private let keys: StoredKeys
    private let lastPrunedDay: Int64

    /// - Parameter lastPrunedDay: Reports of it and of days before stay out; nil for none.
    init(
        _ connection: Connection, _ outbox: Outbox, _ keys: StoredKeys,
        behind lastPrunedDay: Int64?
    ) {
        (self.connection, self.outbox, self.keys) = (connection, outbox, keys)
        self.lastPrunedDay = lastPrunedDay ?? .min
    }

    private static let query = """
        select report.source, report.seq, revision, id, loop, mode, activity, phase, state, verdict,
            start_us, duration_ns, cpu_ns, detection_delay_ns, samples, threads, cause,
            cause_confidence, cause_permille, cause_detail, signature, agent_ns, skipped_threads,
            ending, evidence, evidence_numbers, unnamed_report.seq is not null,
            ifnull(delayed_ns, 0)
        from report left join unnamed_report using (source, seq)
        """

    mutating func run(_ summary: inout StoreCopy.Summary) throws {
        var sharded = ShardedRows(
            """
            report_local (app, day, id, version, build_id, host, loop_name, verdict, cause, state,
                start_us, duration_ns, cpu_ns, bucket, signature, is_unnamed, source, seq, revision,
                loop, mode, activity, phase, ending, detection_delay_ns, agent_ns, skipped_threads,
                stack, samples, threads, cause_confidence_bits, cause_permille, cause_detail,
                evidence, evidence_numbers, delayed_ns)
            """, isEverywhere: false, outbox)
        let rows = try connection.prepare(Self.query)
        while try rows.step() {
            guard try rows.integer(at: 10).day > lastPrunedDay else { continue }
            let id = try rows.uniqueID(at: 3)
            try sharded.add(of: id) { try add(rows, id, to: &$0) }
        }
        try sharded.flush()
        summary.reportCount += sharded.rowCount
        summary.add(sharded)
    }

    private func add(
        _ row: Statement, _ id: UniqueID, to out: inout TabSeparatedWriter
    ) throws {
        guard let loop = keys.loops[try row.integer(at: 4)],
            let source = keys.sources[try row.integer(at: 0)],
            let mode = keys.labels[try row.integer(at: 5)]
        else { throw row.damage("a report's loop, source or mode is missing") }
        let (start, duration) = (try row.integer(at: 10), try row.integer(at: 11))
        out.add(loop.app)
        out.add(start.day)
        out.add(id)
        out.add(columns: loop.columns)
        out.add(try row.integer(at: 9))
        out.add(row.optionalInteger(at: 16) ?? -1)
        out.add(try row.integer(at: 8))
        out.add(start)
        out.add(duration)
        out.add(try row.integer(at: 12))
        out.add(Int64(DurationHistogram.bucket(ofNanoseconds: duration)))
        out.add(try row.optionalInteger(at: 20).map { try key($0, in: keys.signatures, row) } ?? 0)
        out.add(try row.integer(at: 26))
        out.add(source)
        out.add(try row.integer(at: 1))
        out.add(try row.integer(at: 2))
        out.add(loop.hash)
        out.add(mode)
        if let activity = row.optionalInteger(at: 6) {
            out.add(keys.labels[activity] ?? "")
        } else {
            out.null()
        }
        out.add(try row.integer(at: 7))
        out.add(row.optionalInteger(at: 23) ?? -1)
        out.add(try row.integer(at: 13))
        out.add(try row.integer(at: 21))
        out.add(try row.integer(at: 22))
        try addStacks(row, to: &out)
        if row.isNull(at: 17) {
            out.null()
        } else {
            out.add(Int64(bitPattern: row.double(at: 17).bitPattern))
        }
        out.add(optional: row.optionalInteger(at: 18))
        out.add(optionalContentOf: row, at: 19)
        out.add(
            optional: try row.optionalInteger(at: 24).map { try key($0, in: keys.evidence, row) })
        out.add(optionalContentOf: row, at: 25)
        out.add(try row.delayed_ns(at: 27, in: duration))
    }

    /// The stacks' hashes, and the lists of samples and threads with indices into these.
    private func addStacks(_ row: Statement, to out: inout TabSeparatedWriter) throws {
        var samples = try row.samples(at: 14)
        var threads = row.isNull(at: 15) ? nil : try row.threads(at: 15)
        var places = StackPlaces()
        for index in samples.indices {
            samples[index].stack = samples[index].stack.map { places.place(of: $0) }
        }
        for index in threads?.indices ?? 0..<0 {
            let stack = threads?[index].stack
            threads?[index].stack = stack.map { places.place(of: $0) }
        }
        out.add(list: try places.stacks.map { try key($0, in: keys.stacks, row) })
        out.add(samples.encoded)
        if let threads { out.add(threads.encoded) } else { out.null() }
    }

    private func key(
        _ number: Int64, in keys: [Int64: Int64], _ row: Statement
    ) throws -> Int64 {
        guard let key = keys[number] else { throw row.damage("a report refers to a missing row") }
        return key
    }
}

/// The distinct stacks of a report, in the order in which they come.
private struct StackPlaces {
    private(set) var stacks: [Int64] = []
    private var places: [Int64: Int64] = [:]

    mutating func place(of stack: Int64) -> Int64 {
        // Most reports have one or two.
        if stacks.count < 8, let place = stacks.firstIndex(of: stack) { return Int64(place) }
        if let place = places[stack] { return place }
        let place = Int64(stacks.count)
        stacks.append(stack)
        places[stack] = place
        return place
    }
}
