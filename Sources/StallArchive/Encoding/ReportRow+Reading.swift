// A report's row as a store of another program has it, and the report that it is.

internal import StallModel
package import StallStore

extension ReportRow {
    /// Reads the cause and its evidence as they are stored: enough to store them elsewhere.
    package mutating func readCause(_ row: Statement) throws(StoreError) {
        let (place, evidence) = (Self.place(of: "cause"), Self.place(of: "evidence"))
        guard let cause = try row.causeClass(at: place) else { return }
        let detail = row.optionalBytes(at: place + 2)
        let numbers = row.optionalBytes(at: evidence + 1)
        let permille = row.optionalInteger(at: evidence + 2)
        self.cause = StoredCause(
            cause, confidence: permille.map { Double($0) / 1000 } ?? row.double(at: place + 1),
            detail: detail ?? [])
        self.evidence = row.optionalInteger(at: evidence).map {
            SharedEvidence(id: $0, numbers: numbers ?? [], detail: detail)
        }
    }

    /// Refuses a row that no agent wrote. Readers of a store show such rows, which older programs imported.
    package func expectLimits(_ row: Statement) throws(StoreError) {
        try row.expect(start_us, in: 0...ValueLimits.time_us, "time in microseconds")
        try row.expect(
            max(duration_ns, cpu_ns, detectionDelay_ns, agent_ns), in: 0...ValueLimits.duration_ns,
            "duration in nanoseconds")
        try row.expect(skippedThreads, in: 0...ValueLimits.count, "count")
    }

    /// The report without its samples and threads.
    func report(
        run: ProcessRun, loop: String, threshold: Duration, mode: String, activity: String?,
        cause: StallCause?
    ) -> StallReport {
        var report = StallReport(
            id: id, run: run, loop: loop, mode: mode, phase: phase, activity: activity,
            start: UnixTime(microseconds: start_us), duration: .nanoseconds(duration_ns),
            cpuTime: .nanoseconds(cpu_ns), delayedTime: .nanoseconds(delayed_ns),
            threshold: threshold, detectionDelay: .nanoseconds(detectionDelay_ns),
            state: state, verdict: verdict, cause: cause,
            skippedThreadCount: Int(skippedThreads), agentTime: .nanoseconds(agent_ns))
        report.outcome = outcome
        return report
    }
}
