// Prometheus metrics of a periodic job: a file for node_exporter's textfile collector. Counters continue from the
// previous file.

internal import Foundation
internal import StallAnalysis
internal import StallModel
internal import StallArchive

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
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ")
            guard parts.count == 2 else { continue }
            if line.hasPrefix(Self.reportsName + "{") {
                reports[String(parts[0])] = Int(parts[1])
            } else if parts[0] == "stallctl_last_success_timestamp_seconds" {
                lastSuccess = Double(parts[1])
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
            let format = file.isOfLines ? "jsonl" : "store"
            switch file.outcome {
            case .taken(let added, let changed):
                add(format, "added", added)
                add(format, "changed", changed)
                add(format, "failed", file.lineFaultCount)
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
        var lines: [String] = []
        func family(_ name: String, _ type: String, _ help: String) {
            lines.append("# HELP \(name) \(help)")
            lines.append("# TYPE \(name) \(type)")
        }
        family(Self.reportsName, "counter", "Reports that ingest imported or failed to import.")
        lines += reports.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        family("stallctl_last_run_timestamp_seconds", "gauge", "Time of the last ingest run.")
        lines.append("stallctl_last_run_timestamp_seconds \(time.seconds)")
        if let lastSuccess {
            family(
                "stallctl_last_success_timestamp_seconds", "gauge",
                "Time of the last ingest run without failures.")
            lines.append("stallctl_last_success_timestamp_seconds \(lastSuccess)")
        }
        family(
            "stallctl_stalls", "gauge",
            "Stalls in the store by group, those with the most time lost first.")
        let groups = Self.parts(stalls) { group in
            "signature=\"\(group.map { hexadecimal($0.group.signature) } ?? "other")\","
                + "title=\"\(Self.escaped(group?.title ?? "other"))\""
        }
        lines += groups.map { "stallctl_stalls{\($0.labels)} \($0.count)" }
        family(
            "stallctl_group_lost_seconds", "gauge",
            "Time lost in the stalls in the store by group, the largest first.")
        lines += groups.map { "stallctl_group_lost_seconds{\($0.labels)} \($0.lost / .seconds(1))" }
        let parts = Self.parts(builds) { build in
            "app=\"\(Self.escaped(build?.apps.first ?? "other"))\","
                + "version=\"\(Self.escaped(build?.versions.first ?? "other"))\""
        }
        family(
            "stallctl_app_stalls", "gauge",
            "Stalls in the store by app and version, those with the most time lost first.")
        lines += parts.map { "stallctl_app_stalls{\($0.labels)} \($0.count)" }
        family(
            "stallctl_app_lost_seconds", "gauge",
            "Time lost in the stalls in the store by app and version, the largest first.")
        lines += parts.map { "stallctl_app_lost_seconds{\($0.labels)} \($0.lost / .seconds(1))" }
        family("stallctl_stall_duration_seconds", "histogram", "Durations of the stalls.")
        for bound in Self.bounds {
            let count = stalls.durations.count(upTo: .seconds(bound))
            lines.append("stallctl_stall_duration_seconds_bucket{le=\"\(bound)\"} \(count)")
        }
        let count = groups.reduce(0) { $0 + $1.count }
        let sum = groups.reduce(Duration.zero) { $0 + $1.lost }
        lines.append("stallctl_stall_duration_seconds_bucket{le=\"+Inf\"} \(count)")
        lines.append("stallctl_stall_duration_seconds_sum \(sum / .seconds(1))")
        lines.append("stallctl_stall_duration_seconds_count \(count)")
        try Output.write(lines: lines, to: path)
    }

    /// The groups that lost the most time, each with labels of its own, and one for all others.
    ///
    /// - Parameter labels: The labels of a group; of nil, those of all others.
    private static func parts(
        _ answer: AggregateAnswer, labels: (StallAggregate?) -> String
    ) -> [(labels: String, count: Int, lost: Duration)] {
        let groups = answer.groups.sorted { ($0.total, $1.count) > ($1.total, $0.count) }
        var parts: [(labels: String, count: Int, lost: Duration)] =
            groups.prefix(groupLimit).map { (labels($0), $0.count, $0.total) }
        let others = groups.dropFirst(groupLimit)
        if !others.isEmpty {
            let total = others.reduce(Duration.zero) { $0 + $1.total }
            parts.append((labels(nil), others.reduce(0) { $0 + $1.count }, total))
        }
        return parts
    }

    /// Escapes a label's value. Control characters are shown as escapes first.
    private static func escaped(_ text: String) -> String {
        text.printable.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    }
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
