// A store's contents, the watched time and statistics of each loop, and suppressed stalls.

package import StallModel
package import StallQuery

/// The result of `status`.
package struct StatusAnswer: Sendable {
    package var status: StoreStatus
    package var exposure: ExposureSummary

    package init(status: StoreStatus, exposure: ExposureSummary) {
        self.status = status
        self.exposure = exposure
    }

    package init(of store: any QueryableStore) throws {
        self = try store.consistently {
            let status = try store.status()
            return try StatusAnswer(
                status: status,
                exposure: ExposureSummary(
                    exposure: store.watchedLoops(ReportFilter(), withLengths: true),
                    lost: status.lostByLoop, watchedLost: status.watchedLostByLoop,
                    suppressed: store.suppressedTotals(ReportFilter())))
        }
    }
}

/// The totals of one loop's exposure rows.
package struct WatchedLoopRow: Encodable, Sendable {
    package var loop: String
    package var watchedMs: Double
    package var busyMs: Double
    package var iterations: Int
    /// Null when no iteration ended.
    @Nullable package var iterationP99Ms: Double?
    package var microStallCount: Int
    package var microStallMs: Double
    /// How long its thread was runnable but not scheduled.
    package var readyDelayMs: Double
    /// The time lost in ranked stalls of loops with recorded watched time, per watched hour.
    package var rateMsPerHour: Double
    /// The time lost in ranked stalls of loops with this name without recorded watched time.
    package var unwatchedLostMs: Double
}

/// The stalls that have no report by policy.
package struct SuppressedRow: Encodable, Sendable {
    package var count: Int
    package var totalMs: Double
    package var placeCount: Int
    package var reasons: [String: Int]
}

package struct ExposureSummary: Sendable {
    package let loops: [WatchedLoopRow]
    package let suppressed: SuppressedRow

    /// - Parameters:
    ///   - exposure: Exposure rows, or their totals by loop.
    ///   - lost: The time lost in ranked stalls, by loop.
    ///   - watchedLost: The part of it in loops with recorded watched time.
    package init(
        exposure: [LoopExposure], lost: [String: Duration] = [:],
        watchedLost: [String: Duration] = [:], suppressed: [SuppressedTotals]
    ) {
        loops = Dictionary(grouping: exposure, by: \.loop).sorted { $0.key < $1.key }
            .map { loop, stretches in
                let watched = watchedLost[loop] ?? .zero
                return WatchedLoopRow(
                    loop, stretches, lost: watched, unwatched: (lost[loop] ?? .zero) - watched)
            }
        self.suppressed = SuppressedRow(suppressed)
    }
}

extension SuppressedRow {
    package init(_ stalls: [SuppressedTotals]) {
        self.init(
            count: stalls.reduce(0) { $0.addingSaturated($1.count) },
            totalMs: stalls.reduce(Duration.zero) { $0 + $1.total }.milliseconds,
            placeCount: Set(stalls.map(\.place)).count,
            reasons: stalls.reduce(into: [:]) {
                $0[$1.reason.word, default: 0].addSaturated($1.count)
            })
    }
}

extension WatchedLoopRow {
    fileprivate init(
        _ loop: String, _ stretches: [LoopExposure], lost: Duration, unwatched: Duration
    ) {
        func sum(_ part: (LoopExposure) -> Duration) -> Double {
            stretches.reduce(Duration.zero) { $0 + part($1) }.milliseconds
        }
        var lengths = LengthHistogram()
        for stretch in stretches { lengths.add(stretch.lengths) }
        let watchedMs = sum(\.watched)
        self.init(
            loop: loop, watchedMs: watchedMs, busyMs: sum(\.busy), iterations: lengths.count,
            iterationP99Ms: lengths.quantile(0.99)?.milliseconds,
            microStallCount: stretches.reduce(0) { $0.addingSaturated($1.microStallCount) },
            microStallMs: sum(\.microStallTime), readyDelayMs: sum(\.readyDelay),
            rateMsPerHour: watchedMs > 0 ? lost.milliseconds / watchedMs * 3_600_000 : 0,
            unwatchedLostMs: unwatched.milliseconds)
    }
}
