// Exports the agent's counters to swift-metrics, for dashboards. No metrics by group, whose number is unbounded.

#if Metrics
internal import CoreMetrics
internal import Metrics
public import StallAgent
internal import StallModel
internal import StallRunLoop

extension StallMonitor {
    /// Reports stalls and loops to the metrics system that the app has bootstrapped, until the monitor stops.
    ///
    /// | metric | kind | labels |
    /// |---|---|---|
    /// | `stallwatch_stalls_total` | counter | `loop`, `cause` |
    /// | `stallwatch_stall_seconds` | timer | `loop` |
    /// | `stallwatch_loop_busy_ratio` | gauge, 0 to 1 | `loop`; of each `interval` |
    ///
    /// Stalls are counted when they end. Delays that are not the app's own (starved, stopped, debugger) are not
    /// counted.
    ///
    /// - Parameter interval: The interval at which the gauges are set; one wake-up each.
    public func reportsMetrics(every interval: Duration = .seconds(10)) {
        onStall { report in
            guard report.verdict == .stalled || report.verdict == .saturated else { return }
            let cause = report.cause?.cause ?? .unknown
            Counter(
                label: "stallwatch_stalls_total",
                dimensions: [("loop", report.loop), ("cause", cause.word)]
            ).increment()
            Timer(label: "stallwatch_stall_seconds", dimensions: [("loop", report.loop)])
                .recordNanoseconds(report.duration.wholeNanoseconds)
        }
        let before = AgentLocked(BusyTimes())
        repeatedly(every: max(interval, .seconds(1))) { [weak self] in
            guard let self else { return }
            let ratios = before.withLock { $0.ratios(busyTimes) }
            for (loop, ratio) in ratios {
                Gauge(label: "stallwatch_loop_busy_ratio", dimensions: [("loop", loop)])
                    .record(ratio)
            }
        }
    }
}

/// Each loop's busy time at the previous update.
struct BusyTimes {
    private var last: (at: MonotonicInstant, busy: [String: Duration])?

    /// The share of the time since the previous update that each loop was busy; empty at the first. Loops with the same
    /// name are added up.
    mutating func ratios(_ now: (at: MonotonicInstant, loops: [(name: String, busy: Duration)]))
        -> [(loop: String, ratio: Double)]
    {
        var busy: [String: Duration] = [:]
        var counts: [String: Int] = [:]
        for loop in now.loops {
            busy[loop.name, default: .zero] += loop.busy
            counts[loop.name, default: 0] += 1
        }
        defer { last = (now.at, busy) }
        guard let last, now.at > last.at else { return [] }
        let elapsed = now.at - last.at
        return busy.keys.sorted().compactMap { name in
            guard let before = last.busy[name], let count = counts[name] else { return nil }
            let share = (busy[name]! - before) / (elapsed * count)
            return (name, min(max(share, 0), 1))
        }
    }
}

extension Duration {
    fileprivate var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds.multipliedReportingOverflow(by: 1_000_000_000).partialValue
            &+ attoseconds / 1_000_000_000
    }
}
#endif
