// One row of the table `report`: its values, and the names of their columns, in one order. Every writer of reports binds
// them here, the agent too, and every reader of whole reports reads them here.

package import StallModel

/// A report's row.
package struct ReportRow: Equatable {
    package var seq: Int64
    package var revision: Int64
    package var id: UniqueID
    package var loop: Int64 = 0
    package var mode: Int64 = 0
    package var activity: Int64?
    package var phase = LoopPhase.unknown
    package var outcome = StallOutcome(.ended)
    package var verdict = StallVerdict.stalled
    package var start_us: Int64 = 0
    package var duration_ns: Int64 = 0
    package var cpu_ns: Int64 = 0
    package var detectionDelay_ns: Int64 = 0
    package var samples: [StoredSample] = []
    package var cause: StoredCause?
    package var threads: [StoredThread] = []
    package var agent_ns: Int64 = 0
    package var skippedThreads: Int64 = 0
    /// How its evidence is written where it is shared; nil in an agent's store, whose causes have it as text.
    package var evidence: SharedEvidence?
    /// The part of the duration that was not the thread's own; zero where none is known.
    package var delayed_ns: Int64 = 0
    /// Its group; nil in an agent's store.
    package var signature: Int64?

    package init(seq: Int64, revision: Int64, id: UniqueID) {
        (self.seq, self.revision, self.id) = (seq, revision, id)
    }

    /// The row of a report.
    ///
    /// - Parameters:
    ///   - loop, mode, activity: The numbers of the rows that it refers to.
    ///   - stack: The number of a stack, from its locations and frames; nil for one without anything in it.
    package init(
        _ report: StallReport, seq: Int64, revision: Int64, loop: Int64, mode: Int64,
        activity: Int64?,
        stack: ([CodeLocation], [Frame], _ isTruncated: Bool) throws -> Int64?
    ) throws {
        self.init(seq: seq, revision: revision, id: report.id)
        (self.loop, self.mode, self.activity) = (loop, mode, activity)
        (phase, outcome, verdict) = (report.phase, report.outcome, report.verdict)
        start_us = report.start.microseconds
        duration_ns = report.duration.nanoseconds
        cpu_ns = report.cpuTime.nanoseconds
        detectionDelay_ns = report.detectionDelay.nanoseconds
        samples = try report.samples.map { sample in
            StoredSample(
                offset_ns: sample.offset.nanoseconds, weight_ns: sample.weight.nanoseconds,
                isLate: sample.isLate, thread: sample.thread.rawValue, method: sample.method,
                stack: try stack(sample.locations, sample.frames, sample.isTruncated),
                captureCost_ns: sample.captureCost.nanoseconds, failure: sample.failure)
        }
        samples.omitImpliedWeights(in: duration_ns)
        cause = report.cause.map { StoredCause($0) }
        threads = try report.threads.map { thread in
            StoredThread(
                thread: thread.thread.rawValue, name: thread.name, role: thread.role,
                method: thread.method,
                stack: try stack(thread.locations, thread.frames, thread.isTruncated),
                failure: thread.failure)
        }
        agent_ns = report.agentTime.nanoseconds
        skippedThreads = Int64(report.skippedThreadCount)
        delayed_ns = min(report.delayedTime.nanoseconds, duration_ns)
    }

    /// The columns that the checksum covers, in its order.
    static let checkedColumns = [
        "seq", "revision", "id", "loop", "mode", "activity", "phase", "state", "verdict",
        "start_us",
        "duration_ns", "cpu_ns", "detection_delay_ns", "samples", "cause", "cause_confidence",
        "cause_detail", "threads", "agent_ns", "skipped_threads", "ending",
    ]
    /// Columns that came later: the checksum covers them in rows where they hold something. One that a later migration
    /// adds goes to their end.
    static let laterColumns = [
        "evidence", "evidence_numbers", "cause_permille", "delayed_ns",
    ]
    package static let columns = checkedColumns + laterColumns + ["checksum", "signature"]

    /// A statement that inserts what `bind` binds.
    ///
    /// - Parameter conflict: `ignore` or `replace`, for a number that has a row.
    package static func insertion(or conflict: String) -> String {
        let values = columns.map { _ in ", ?" }.joined()
        return """
            insert or \(conflict) into report (source, \(columns.joined(separator: ", ")))
            values (?\(values))
            """
    }

    /// A statement that brings the row of `bind`'s source, number and id up to date.
    static var change: String {
        let values = columns.enumerated().filter { !["seq", "id"].contains($1) }
            .map { "\($1) = ?\($0 + 2)" }
        return """
            update report set \(values.joined(separator: ", "))
            where source = ?1 and seq = ?2 and id = ?4
            """
    }

    /// Binds the source and the values of `columns`.
    package func bind(to statement: Statement, source: Int64) throws(StoreError) {
        var row = RowBinder(statement)
        row.bind(source)
        visit(&row)
        row.bind(row.checksum.value)
        row.bind(signature)
        try row.finish()
    }

    /// A hash of all values but the signature. Rows of two stores are comparable by it once it is taken of the content that
    /// their numbers stand for.
    package var digest: UInt64 {
        var row = RowDigest()
        visit(&row)
        return row.checksum.digest
    }

    /// Visits the values of `checkedColumns` and `laterColumns`.
    private func visit(_ row: inout some RowVisitor) {
        row.check(seq)
        row.check(revision)
        row.check(id)
        row.check(loop)
        row.check(mode)
        row.check(activity)
        row.check(Int64(phase.rawValue))
        row.check(outcome.numbers.state)
        row.check(Int64(verdict.rawValue))
        row.check(start_us)
        row.check(duration_ns)
        row.check(cpu_ns)
        row.check(detectionDelay_ns)
        row.check(samples.encoded)
        row.check(cause.map { Int64($0.cause.rawValue) })
        row.check(confidence)
        row.check(detail)
        row.check(threads.isEmpty ? nil : threads.encoded)
        row.check(agent_ns)
        row.check(skippedThreads)
        row.check(outcome.numbers.ending)
        row.checkLater(evidence?.id)
        row.checkLater(evidence?.numbers)
        row.checkLater(permille)
        row.checkLater(delayed_ns == 0 ? nil : delayed_ns)
    }

    package var state: StallState { outcome.state }
    /// The confidence in thousandths, where it is written as such.
    package var permille: Int64? { evidence == nil ? nil : cause?.permille }
    /// The confidence, where it is not.
    package var confidence: Double? { permille == nil ? cause?.confidence : nil }
    /// The rest of the cause, as it is written.
    package var detail: [UInt8]? { evidence == nil ? cause?.detail : evidence?.detail }
}

// MARK: Reading

extension ReportRow {
    private static let readColumns = checkedColumns + laterColumns + ["signature"]

    /// The columns that `init(_:)` reads, of the table `report`.
    ///
    /// - Parameter threads: Otherwise there are none in the rows.
    package static func selected(threads: Bool = true) -> String {
        readColumns.map { $0 == "threads" && !threads ? "x''" : "report." + $0 }
            .joined(separator: ", ")
    }

    /// The number of these columns: others may follow.
    package static let selectedCount = CInt(readColumns.count)
    /// The columns that the checksum covers, and those that it covers where they hold something.
    package static let checked = 0..<CInt(checkedColumns.count)
    package static let later =
        checked.upperBound..<checked.upperBound + CInt(laterColumns.count)

    /// The index of a column among them.
    package static func place(of column: String) -> CInt {
        CInt(readColumns.firstIndex(of: column)!)
    }

    /// Reads the row without its cause.
    package init(_ row: Statement) throws(StoreError) {
        self.init(seq: try row.integer(), revision: try row.integer(), id: try row.uniqueID())
        loop = try row.integer()
        mode = try row.integer()
        activity = row.optionalInteger()
        phase = try row.value()
        outcome.state = try row.value()
        verdict = try row.value()
        start_us = try row.time_us()
        duration_ns = try row.duration_ns()
        cpu_ns = try row.duration_ns()
        detectionDelay_ns = try row.duration_ns()
        samples = try row.samples()
        row.skip(3)
        threads = try row.threads()
        agent_ns = try row.duration_ns()
        skippedThreads = try row.count()
        outcome.ending = try row.ending()
        row.skip(3)
        delayed_ns = try row.delayed_ns(in: duration_ns)
        signature = row.optionalInteger()
    }

    /// A condition of SQL that holds for every row within the limits.
    package static let limits = """
        length(id) = 16 and start_us between 0 and \(ValueLimits.time_us)
        and \(durations) and skipped_threads between 0 and \(ValueLimits.count)
        and ifnull(delayed_ns, 0) between 0 and duration_ns
        and ifnull(ending, 1) between 1 and \(StallEnding.allCases.map(\.rawValue).max()!)
        """

    private static let durations = ["duration_ns", "cpu_ns", "detection_delay_ns", "agent_ns"]
        .map { "\($0) between 0 and \(ValueLimits.duration_ns)" }.joined(separator: " and ")
}

extension StallOutcome {
    /// The columns that `Statement.outcome` reads.
    package static let columns = "report.state, report.ending"
    /// Sets them to the first two values that are bound, `numbers`.
    static let assignment = "state = ?1, ending = ?2"

    var numbers: (state: Int64, ending: Int64?) {
        (Int64(state.rawValue), ending.map { Int64($0.rawValue) })
    }
}

extension Statement {
    package func outcome() throws(StoreError) -> StallOutcome {
        StallOutcome(try value(), try ending())
    }

    fileprivate func ending() throws(StoreError) -> StallEnding? {
        let column = next()
        return isNull(at: column) ? nil : try rawValue(at: column)
    }
}

/// A cause's evidence as a central store has it.
package struct SharedEvidence: Equatable {
    /// The number of the `evidence` row.
    package var id: Int64
    package var numbers: [UInt8]
    /// The rest of the cause's detail; nil where the cause alone implies it.
    package var detail: [UInt8]?

    package init(id: Int64, numbers: [UInt8], detail: [UInt8]?) {
        self.id = id
        self.numbers = numbers
        self.detail = detail
    }
}

/// Is given a row's values in the order of its columns.
private protocol RowVisitor {
    /// A value that the checksum covers.
    mutating func check(_ value: some SQLValue)
    /// A value that the checksum covers where there is one.
    mutating func checkLater<Value: SQLValue>(_ value: Value?)
}

/// Adds up all values, also those that are missing.
private struct RowDigest: RowVisitor {
    private(set) var checksum = RowChecksum()

    mutating func check(_ value: some SQLValue) { value.combine(into: &checksum) }
    mutating func checkLater<Value: SQLValue>(_ value: Value?) { check(value) }
}

/// Binds a row's values in the order of its columns, and adds up the checksum.
private struct RowBinder: RowVisitor {
    private let statement: Statement
    private var index: CInt = 0
    private var failure: StoreError?
    private(set) var checksum = RowChecksum()

    init(_ statement: Statement) {
        self.statement = statement
        statement.reset()
    }

    mutating func bind(_ value: some SQLValue) {
        index += 1
        do { try statement.bind(value, at: index) } catch { failure = failure ?? error }
    }

    mutating func check(_ value: some SQLValue) {
        bind(value)
        value.combine(into: &checksum)
    }

    mutating func checkLater<Value: SQLValue>(_ value: Value?) {
        bind(value)
        value?.combine(into: &checksum)
    }

    func finish() throws(StoreError) {
        if let failure { throw failure }
    }
}
