// How much of each loop was watched and how it did, and what was held back: the end of `status`.

internal import StallModel

/// What all stretches of one loop's watched time add up to.
struct WatchedLoop: Encodable {
    var loop: String
    var watchedMs: Double
    var busyMs: Double
    var iterations: Int
    /// Null when no iteration ended.
    @Nullable var iterationP99Ms: Double?
    var microStallCount: Int
    var microStallMs: Double
    /// How long its thread was ready to run and had no CPU.
    var readyDelayMs: Double
    /// The time lost in ranked stalls of loops whose watched time is recorded, per hour of it.
    var rateMsPerHour: Double
    /// The time lost in ranked stalls of loops of this name whose watched time is not recorded.
    var unwatchedLostMs: Double
}

/// The stalls that have no report on purpose.
struct SuppressedRow: Encodable {
    var count: Int
    var totalMs: Double
    var placeCount: Int
    var reasons: [String: Int]
}

struct ExposureView {
    let loops: [WatchedLoop]
    let suppressed: SuppressedRow

    /// - Parameters:
    ///   - exposure: Of stretches, or of what those of a loop add up to.
    ///   - lost: The time lost in ranked stalls, by loop.
    ///   - watchedLost: The part of it that was lost in loops whose watched time is recorded.
    init(
        exposure: [LoopExposure], lost: [String: Duration] = [:],
        watchedLost: [String: Duration] = [:], suppressed: [SuppressedStalls]
    ) {
        loops = Dictionary(grouping: exposure, by: \.loop).sorted { $0.key < $1.key }
            .map { loop, stretches in
                let watched = watchedLost[loop] ?? .zero
                return WatchedLoop(
                    loop, stretches, lost: watched, unwatched: (lost[loop] ?? .zero) - watched)
            }
        self.suppressed = SuppressedRow(suppressed)
    }

    /// A line for each loop that was watched, and one for stalls without reports; nothing where there is nothing to say.
    var lines: [String] { loops.map(\.line) + suppressed.lines }
}

extension SuppressedRow {
    init(_ stalls: [SuppressedStalls]) {
        self.init(
            count: stalls.reduce(0) { $0 + $1.count },
            totalMs: stalls.reduce(Duration.zero) { $0 + $1.total }.milliseconds,
            placeCount: Set(stalls.map(\.place)).count,
            reasons: stalls.reduce(into: [:]) { $0[$1.reason.word, default: 0] += $1.count })
    }

    /// One line or none.
    var lines: [String] {
        guard count > 0 else { return [] }
        return [
            "Counted without a report: \(counted(count, "stall")) of \(precise(totalMs)) at "
                + "\(counted(placeCount, "place")) (rate limits and debugger policy)."
        ]
    }
}

extension WatchedLoop {
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
            microStallCount: stretches.reduce(0) { $0 + $1.microStallCount },
            microStallMs: sum(\.microStallTime), readyDelayMs: sum(\.readyDelay),
            rateMsPerHour: watchedMs > 0 ? lost.milliseconds / watchedMs * 3_600_000 : 0,
            unwatchedLostMs: unwatched.milliseconds)
    }

    fileprivate var line: String {
        let watched = Duration.microseconds(watchedMs * 1000)
        var text =
            "\(loop.printable): watched for \(watched.decimal(unit: 3_600_000_000_000, digits: 2)) h, "
            + "\(percent(.microseconds(busyMs * 1000), of: watched)) busy, "
            + counted(iterations, "iteration")
        if let long = iterationP99Ms { text += ", 99 % of them below \(precise(long))" }
        if microStallCount > 0 {
            text += ", \(counted(microStallCount, "micro-stall")) of \(precise(microStallMs))"
        }
        if rateMsPerHour > 0 { text += ", \(precise(rateMsPerHour)) an hour lost in stalls" }
        if readyDelayMs > 1 { text += ", \(precise(readyDelayMs)) ready without a CPU" }
        guard unwatchedLostMs > 0 else { return text + "." }
        return text + "; \(precise(unwatchedLostMs)) more lost where watched time is not recorded."
    }
}

private func precise(_ milliseconds: Double) -> String {
    Duration.microseconds(milliseconds * 1000).precise
}

extension SuppressionReason {
    fileprivate var word: String {
        switch self {
        case .place: "place"
        case .hour: "hour"
        case .debugger: "debugger"
        }
    }
}
