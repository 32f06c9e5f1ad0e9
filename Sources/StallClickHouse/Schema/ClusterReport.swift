// A report in the cluster's table, written and read: hashes in the place of row numbers.

internal import StallModel
internal import StallStore

/// A report's row whose loop, group and evidence are hashes, and whose stacks are indexes of `stacks`.
struct ClusterReport {
    var row: ReportRow
    var source: UniqueID
    var mode: String
    var activity: String?
    /// The hashes of its stacks.
    var stacks: [Int64]

    /// The columns that `write` writes and `init(_:)` reads, in their order. Those that filters need besides come from the
    /// run, the loop and the duration.
    static let columns: ClickHouseQuery = """
        id, source, seq, revision, loop, mode, activity, phase, \(StallOutcome.clusterColumns),
        verdict, start_us, duration_ns, cpu_ns, detection_delay_ns, stack, samples, threads, cause,
        cause_confidence_bits, cause_permille, cause_detail, signature, agent_ns, skipped_threads,
        evidence, evidence_numbers, delayed_ns
        """
    static let columnCount = 28

    func write(to out: inout TabSeparatedWriter) {
        out.add(row.id)
        out.add(source)
        out.add(row.seq)
        out.add(row.revision)
        out.add(row.loop)
        out.add(mode)
        if let activity { out.add(activity) } else { out.null() }
        out.add(Int64(row.phase.rawValue))
        out.add(row.outcome)
        out.add(Int64(row.verdict.rawValue))
        out.add(row.start_us)
        out.add(row.duration_ns)
        out.add(row.cpu_ns)
        out.add(row.detectionDelay_ns)
        out.add(list: stacks)
        out.add(row.samples.encoded)
        out.add(optional: row.threads.isEmpty ? nil : row.threads.encoded)
        out.add(row.cause.map { Int64($0.cause.rawValue) } ?? -1)
        out.add(optional: row.confidence.map { Int64(bitPattern: $0.bitPattern) })
        out.add(optional: row.permille)
        out.add(optional: row.detail)
        out.add(row.signature ?? 0)
        out.add(row.agent_ns)
        out.add(row.skippedThreads)
        out.add(optional: row.evidence?.id)
        out.add(optional: row.evidence?.numbers)
        out.add(row.delayed_ns)
    }

    init(_ rows: TabSeparatedRows) throws {
        let id = try rows.uniqueID()
        source = try rows.uniqueID()
        row = ReportRow(seq: try rows.integer(), revision: try rows.integer(), id: id)
        row.loop = try rows.integer()
        (mode, activity) = (try rows.text(), try rows.optionalText())
        row.phase = try rows.phase()
        row.outcome = try rows.outcome()
        row.verdict = try rows.verdict()
        row.start_us = try rows.integer()
        row.duration_ns = try rows.integer()
        row.cpu_ns = try rows.integer()
        row.detectionDelay_ns = try rows.integer()
        stacks = try rows.integers()
        let samples = try rows.bytes().withUnsafeBytes { [StoredSample](encoded: $0) }
        guard let samples else { throw rows.bad("a list of samples") }
        row.samples = samples
        let threads = try (rows.optionalBytes() ?? [])
            .withUnsafeBytes { [StoredThread](encoded: $0) }
        guard let threads else { throw rows.bad("a list of threads") }
        row.threads = threads
        let cause = try rows.cause()
        let bits = try rows.optionalInteger()
        let permille = try rows.optionalInteger().map { Double($0) / 1000 }
        let detail = try rows.optionalBytes()
        row.cause = cause.map { cause in
            let confidence = bits.map { Double(bitPattern: UInt64(bitPattern: $0)) }
            return StoredCause(
                cause, confidence: permille ?? confidence ?? 0, detail: detail ?? [])
        }
        row.signature = try rows.integer()
        row.agent_ns = try rows.integer()
        row.skippedThreads = try rows.integer()
        let (evidence, numbers) = (try rows.optionalInteger(), try rows.optionalBytes())
        row.evidence = evidence.map {
            SharedEvidence(id: $0, numbers: numbers ?? [], detail: detail)
        }
        row.delayed_ns = try rows.integer()
        let named = samples.compactMap(\.stack) + threads.compactMap(\.stack)
        guard named.allSatisfy({ 0..<Int64(stacks.count) ~= $0 }) else {
            throw rows.bad(15, "a stack for each number")
        }
    }
}

extension ClusterReport {
    /// The form in which a row of a store goes to the cluster.
    ///
    /// - Parameters:
    ///   - source: The number of its source.
    ///   - rows: Of the store, for errors.
    init(
        _ row: ReportRow, ofSource source: Int64, _ rows: Statement, _ keys: StoredKeys,
        _ loop: StoredKeys.Loop
    ) throws {
        func key(_ number: Int64, in keys: [Int64: Int64]) throws -> Int64 {
            guard let key = keys[number] else {
                throw rows.damage("a report refers to a missing row")
            }
            return key
        }
        guard let source = keys.sources[source],
            let mode = keys.labels[row.mode]
        else { throw rows.damage("a report's source or mode is missing") }
        (self.row, self.source, self.mode) = (row, source, mode)
        activity = row.activity.map { keys.labels[$0] ?? "" }
        var places = StackPlaces()
        for index in row.samples.indices {
            self.row.samples[index].stack = row.samples[index].stack.map { places.place(of: $0) }
        }
        for index in row.threads.indices {
            self.row.threads[index].stack = row.threads[index].stack.map { places.place(of: $0) }
        }
        stacks = try places.stacks.map { try key($0, in: keys.stacks) }
        self.row.loop = loop.hash
        self.row.signature = try row.signature.map { try key($0, in: keys.signatures) }
        if let evidence = row.evidence {
            self.row.evidence?.id = try key(evidence.id, in: keys.evidence)
        }
    }
}

extension StallOutcome {
    /// The columns that `add` writes and `outcome` reads.
    static let clusterColumns: ClickHouseQuery = "state, ending"
}

extension TabSeparatedWriter {
    mutating func add(_ outcome: StallOutcome) {
        add(Int64(outcome.state.rawValue))
        add(outcome.ending.map { Int64($0.rawValue) } ?? -1)
    }
}

extension TabSeparatedRows {
    func outcome() throws -> StallOutcome {
        let (state, column) = (try state(), next())
        return StallOutcome(
            state, try integer(at: column) < 0 ? nil : try value(at: column, "an ending"))
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
