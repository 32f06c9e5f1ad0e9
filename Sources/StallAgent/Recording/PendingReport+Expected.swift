// Decides whether a stall was meant: its verdict then is `expected`. Runs on the recorder's thread.

internal import StallDetection
internal import StallModel

extension PendingReport {
    /// The scope that explains the stall: without the time in such scopes it is shorter than its threshold. Nil for a
    /// stall, as a longer one is again after the scope's limit, and for delays that are not the app's own.
    func expectedScope(in scopes: ExpectedScopes) -> String? {
        guard incident.verdict == .stalled,
            let overlap = scopes.overlap(
                of: thread, task: task, from: incident.began, to: incident.began + incident.duration
            ), incident.duration - overlap.time < incident.threshold
        else { return nil }
        return overlap.name
    }

    /// Gives the report of a stall that the app declared as meant its verdict, and its cause the scope as a fact.
    mutating func declare(_ report: inout StallReport, in scopes: ExpectedScopes) {
        guard let scope = expectedScope(in: scopes) else { return }
        report.verdict = .expected
        // The verdict speaks for all of its time.
        report.delayedTime = .zero
        if report.activity == nil { report.activity = scope }
        context.append(CauseEvidence(EvidenceName.expected.rawValue, scope))
    }
}
