// A report's row out of its columns, and the report that it is. Every reader of whole reports reads them here.

internal import StallModel
package import StallStore

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
    static let checked = 0..<CInt(checkedColumns.count)
    static let later = checked.upperBound..<checked.upperBound + CInt(laterColumns.count)

    /// The place of a column among them.
    static func place(of column: String) -> CInt { CInt(readColumns.firstIndex(of: column)!) }

    /// Reads the row without its cause, for which there is `EvidenceReader`.
    package init(_ row: Statement) throws(StoreError) {
        self.init(seq: try row.integer(), revision: try row.integer(), id: try row.uniqueID())
        loop = try row.integer()
        mode = try row.integer()
        activity = row.optionalInteger()
        phase = try row.value()
        state = try row.value()
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
        let column = row.next()
        ending = row.isNull(at: column) ? nil : try row.value(at: column)
        row.skip(3)
        delayed_ns = try row.delayed_ns(in: duration_ns)
        signature = row.optionalInteger()
    }

    /// Reads the cause and its evidence as they are stored: enough to store them elsewhere.
    package mutating func readCause(_ row: Statement) throws(StoreError) {
        row.go(to: Self.place(of: "cause"))
        guard let cause = try row.causeClass() else { return }
        let (confidence, detail) = (row.double(), row.optionalBytes())
        row.go(to: Self.place(of: "evidence"))
        let (evidence, numbers) = (row.optionalInteger(), row.optionalBytes())
        let permille = row.optionalInteger()
        self.cause = StoredCause(
            cause, confidence: permille.map { Double($0) / 1000 } ?? confidence,
            detail: detail ?? [])
        self.evidence = evidence.map {
            SharedEvidence(id: $0, numbers: numbers ?? [], detail: detail)
        }
    }

    /// Refuses a row that no agent wrote. Readers of a store show such rows, which older programs imported.
    func expectLimits(_ row: Statement) throws(StoreError) {
        try row.expect(start_us, in: 0...ValueLimits.time_us, "time in microseconds")
        try row.expect(
            max(duration_ns, cpu_ns, detectionDelay_ns, agent_ns), in: 0...ValueLimits.duration_ns,
            "duration in nanoseconds")
        try row.expect(skippedThreads, in: 0...ValueLimits.count, "count")
    }

    /// A condition of SQL that holds for every row within the limits.
    static let limits = """
        length(id) = 16 and start_us between 0 and \(ValueLimits.time_us)
        and \(durations) and skipped_threads between 0 and \(ValueLimits.count)
        and ifnull(delayed_ns, 0) between 0 and duration_ns
        and ifnull(ending, 1) between 1 and \(StallEnding.allCases.map(\.rawValue).max()!)
        """

    private static let durations = ["duration_ns", "cpu_ns", "detection_delay_ns", "agent_ns"]
        .map { "\($0) between 0 and \(ValueLimits.duration_ns)" }.joined(separator: " and ")

    /// The report without its samples and threads.
    func report(
        run: ProcessRun, loop: String, threshold: Duration, mode: String, activity: String?,
        cause: StallCause?
    ) -> StallReport {
        StallReport(
            id: id, run: run, loop: loop, mode: mode, phase: phase, activity: activity,
            start: UnixTime(microseconds: start_us), duration: .nanoseconds(duration_ns),
            cpuTime: .nanoseconds(cpu_ns), delayedTime: .nanoseconds(delayed_ns),
            threshold: threshold, detectionDelay: .nanoseconds(detectionDelay_ns), state: state,
            ending: ending, verdict: verdict, cause: cause,
            skippedThreadCount: Int(skippedThreads), agentTime: .nanoseconds(agent_ns))
    }
}
