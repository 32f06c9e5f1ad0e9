// Watched time per loop and suppressed stalls: the end of `status`.

internal import StallAnalysis
internal import StallModel

extension ExposureSummary {
    /// One line per watched loop, and one for stalls without reports.
    var lines: [String] { loops.map(\.line) + suppressed.lines }
}

extension SuppressedRow {
    /// One line, or none if nothing was suppressed.
    var lines: [String] {
        guard count > 0 else { return [] }
        return [
            "Suppressed, counted without a report: \(counted(count, "stall")), \(precise(totalMs)) in total, at "
                + "\(counted(placeCount, "location")) (rate limits and debugger policy)."
        ]
    }
}

extension WatchedLoopRow {
    fileprivate var line: String {
        let watched = Duration.microseconds(watchedMs * 1000)
        var text =
            "\(loop.printable): watched for \(watched.compact), "
            + "\(percent(.microseconds(busyMs * 1000), of: watched)) busy, "
            + counted(iterations, "iteration")
        if let long = iterationP99Ms { text += ", 99 % of them below \(precise(long))" }
        if microStallCount > 0 {
            text += ", \(counted(microStallCount, "micro-stall")) of \(precise(microStallMs))"
        }
        if rateMsPerHour > 0 { text += ", \(precise(rateMsPerHour)) stalled per hour" }
        if readyDelayMs > 1 { text += ", \(precise(readyDelayMs)) runnable but not scheduled" }
        guard unwatchedLostMs > 0 else { return text + "." }
        return text + "; \(precise(unwatchedLostMs)) more lost where watched time is not recorded."
    }
}

private func precise(_ milliseconds: Double) -> String {
    Duration.microseconds(milliseconds * 1000).precise
}
