// Prometheus metrics of a periodic job: a file for node_exporter's textfile collector. Counters continue from the
// previous file.

internal import Foundation
internal import StallAnalysis
internal import StallFormats
internal import StallIngest
internal import StallModel
internal import StallQuery

/// The job's metrics.
struct Metrics {
    /// Reports by format and result, since the file was made.
    private var reports: [String: Int] = [:]
    private var lastSuccess: Double?

    /// How many groups get a label of their own; the rest share one.
    private static let groupLimit = 20
    private static let bounds = [0.25, 0.5, 1, 2, 5, 10, 30, 60, 300]

    /// Continues from the file; a missing or foreign file starts from zero.
    init(path: String) {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        for (series, value) in PrometheusText.samples(in: text) {
            if series.hasPrefix(Self.reportsName + "{") {
                reports[String(series)] = Int(value)
            } else if series == "stallctl_last_success_timestamp_seconds" {
                lastSuccess = Double(value)
            }
        }
    }

    private static let reportsName = "stallctl_ingest_reports_total"

    /// Adds the result of one run.
    mutating func add(_ summary: IngestSummary, at time: UnixTime) {
        func add(_ format: String, _ result: String, _ count: Int) {
            reports["\(Self.reportsName){format=\"\(format)\",result=\"\(result)\"}", default: 0] +=
                count
        }
        for format in ["store", "jsonl"] {
            for result in ["added", "changed", "failed"] { add(format, result, 0) }
        }
        for file in summary.files {
            let format = file.otherFormat != nil ? "other" : file.isOfLines ? "jsonl" : "store"
            add(format, "added", file.addedCount)
            add(format, "changed", file.changedCount)
            switch file.outcome {
            case .taken: add(format, "failed", file.lineFaultCount)
            // The number of reports in a broken store is unknown: count one failure.
            case .skipped: add(format, "failed", 1)
            }
        }
        if summary.skippedCount == 0 && summary.lineFaultCount == 0 { lastSuccess = time.seconds }
    }

    /// Replaces the file atomically.
    ///
    /// - Parameters:
    ///   - stalls: The totals by group.
    ///   - builds: The totals by app and version.
    func write(
        to path: String, _ stalls: AggregateAnswer, builds: AggregateAnswer, at time: UnixTime
    ) throws {
        var text = PrometheusText()
        text.family(Self.reportsName, .counter, "Reports that ingest imported or failed to import.")
        for (series, count) in reports.sorted(by: { $0.key < $1.key }) {
            text.sample(series, count)
        }
        text.family(
            "stallctl_last_run_timestamp_seconds", .gauge, "Time of the last ingest run.")
        text.sample("stallctl_last_run_timestamp_seconds", time.seconds)
        if let lastSuccess {
            text.family(
                "stallctl_last_success_timestamp_seconds", .gauge,
                "Time of the last ingest run without failures.")
            text.sample("stallctl_last_success_timestamp_seconds", lastSuccess)
        }
        text.family(
            "stallctl_stalls", .gauge,
            "Stalls in the store by group, those with the most time lost first.")
        let groups = Self.parts(stalls) { group in
            [
                "signature": group.map { hexadecimal($0.group.signature) } ?? "other",
                "title": (group?.title ?? "other").printable,
            ]
        }
        for (labels, totals) in groups {
            text.sample(PrometheusText.series("stallctl_stalls", labels), totals.count)
        }
        text.family(
            "stallctl_group_lost_seconds", .gauge,
            "Time lost in the stalls in the store by group, the largest first.")
        for (labels, totals) in groups {
            text.sample(
                PrometheusText.series("stallctl_group_lost_seconds", labels), totals.seconds)
        }
        let parts = Self.parts(builds) { build in
            [
                "app": (build?.apps.first ?? "other").printable,
                "version": (build?.versions.first ?? "other").printable,
            ]
        }
        text.family(
            "stallctl_app_stalls", .gauge,
            "Stalls in the store by app and version, those with the most time lost first.")
        for (labels, totals) in parts {
            text.sample(PrometheusText.series("stallctl_app_stalls", labels), totals.count)
        }
        text.family(
            "stallctl_app_lost_seconds", .gauge,
            "Time lost in the stalls in the store by app and version, the largest first.")
        for (labels, totals) in parts {
            text.sample(PrometheusText.series("stallctl_app_lost_seconds", labels), totals.seconds)
        }
        text.family("stallctl_stall_duration_seconds", .histogram, "Durations of the stalls.")
        func bucket(_ bound: String, _ count: some Numeric) {
            text.sample(
                PrometheusText.series("stallctl_stall_duration_seconds_bucket", ["le": bound]),
                count)
        }
        for bound in Self.bounds {
            bucket("\(bound)", stalls.durations.count(upTo: .seconds(bound)))
        }
        let sum = stalls.totals
        bucket("+Inf", sum.count)
        text.sample("stallctl_stall_duration_seconds_sum", sum.seconds)
        text.sample("stallctl_stall_duration_seconds_count", sum.count)
        try Output.write(lines: text.lines, to: path)
    }

    /// The groups that lost the most time, each with labels of its own, and one for all others.
    ///
    /// - Parameter labels: The labels of a group; of nil, those of all others.
    private static func parts(
        _ answer: AggregateAnswer, labels: (StallAggregate?) -> KeyValuePairs<String, String>
    ) -> [(labels: KeyValuePairs<String, String>, totals: StallTotals)] {
        let (groups, rest) = answer.largest(groupLimit)
        return groups.map { (labels($0), $0.totals) }
            + (rest.count > 0 ? [(labels(nil), rest)] : [])
    }
}

extension StallTotals {
    fileprivate var seconds: Double { total / .seconds(1) }
}

extension UnixTime {
    fileprivate var seconds: Double { Double(microseconds) / 1e6 }
}

extension IngestFileResult {
    /// Decided by the file name, as in the search for source files.
    fileprivate var isOfLines: Bool {
        path == "-" || path.hasSuffix(".jsonl") || path.hasSuffix(".ndjson")
    }
}
