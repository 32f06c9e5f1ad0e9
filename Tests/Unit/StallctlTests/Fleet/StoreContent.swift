// What a central store says, without the numbers that its rows happen to have.

import Foundation
import StallArchive
import StallModel
import StallQuery
import StallStore

/// The content of a central store, by table.
struct StoreContent: Equatable {
    var rows: [String: [String]] = [:]
    var reports: [String] = []
    var status: StoreStatus

    /// - Parameter withNamers: Also whose names places have, which depends on who came first.
    init(_ path: String, withNamers: Bool = true) throws {
        let connection = try Connection(to: path, as: path, .readOnly)
        for (table, query) in Self.queries where withNamers || !Self.ofNamers.contains(table) {
            let statement = try connection.prepare(query)
            var found: [String] = []
            while try statement.step() { found.append(statement.text(at: 0)) }
            rows[table] = found.sorted()
        }
        try connection.close()
        let store = try ReportStore.open(path: path)
        var status = try store.status()
        status.path = ""
        status.bytes = 0
        self.status = status
        try store.forEachReport(ReportFilter(), in: .stored, limit: nil) { report, origin, _ in
            reports.append("\(origin) \(report)")
        }
        reports.sort()
    }

    /// The tables that differ, with the first rows that only one has.
    func difference(from other: StoreContent) -> [String] {
        var found = rows.keys.sorted().flatMap { table -> [String] in
            let (ours, theirs) = (rows[table] ?? [], other.rows[table] ?? [])
            guard ours != theirs else { return [] }
            let (only, missing) = (Set(ours).subtracting(theirs), Set(theirs).subtracting(ours))
            return ["\(table): \(ours.count) and \(theirs.count) rows"]
                + only.sorted().prefix(2).map { "+ \($0)" }
                + missing.sorted().prefix(2).map { "- \($0)" }
        }
        if status != other.status { found.append("status: \(status), and \(other.status)") }
        if reports != other.reports {
            found.append("reports: \(reports.count) and \(other.reports.count)")
            found += Set(reports).subtracting(other.reports).prefix(1).map { "+ \($0)" }
            found += Set(other.reports).subtracting(reports).prefix(1).map { "- \($0)" }
        }
        return found
    }

    private static let ofNamers: Set = ["location namer", "name conflict"]
    private static let loop = """
        (select hex(uuid) || ' ' || name || ' ' || threshold_ns from loop
         join process_run on process_run.id = loop.run where loop.id = %)
        """
    private static let store = "(select hex(store) from source where source.id = %)"
    private static let cohort = """
        (select app || '|' || version || '|' || ifnull(hex(build_id), '-') || '|' || loop || '|' ||
         verdict || '|' || ifnull(cause, '-') || '|' || is_watched from cohort where cohort.id = %)
        """

    private static let queries: [String: String] = [
        "source": row("source", ["hex(store)", "ifnull(hex(origin), '-')"]),
        "report": row(
            "report",
            [
                store.of("report.source"), "seq", "revision", "hex(id)", loop.of("report.loop"),
                "(select value from label where id = mode)", "state", "ending", "verdict",
                "start_us", "duration_ns", "cause", "cause_confidence", "cause_permille",
                "(select hash || title from signature where id = report.signature)",
            ]),
        "exposure": row(
            "exposure",
            [
                store.of("source"), "revision", loop.of("exposure.loop"), "start_us", "watched_ns",
                "busy_ns", "ready_delay_ns", "micro_stall_count", "micro_stall_ns",
                "iteration_count", "hex(lengths)",
            ]),
        "exposure day": row(
            "exposure_day",
            [
                "day", store.of("source"), loop.of("exposure_day.loop"), "crosses_midnight",
                "stretch_count", "start_us", "end_us", "first_revision", "last_revision",
                "watched_ns", "busy_ns", "ready_delay_ns", "micro_stall_count", "micro_stall_ns",
                "hex(lengths)",
            ]),
        "suppression": row(
            "suppression",
            [
                store.of("source"), "revision", loop.of("suppression.loop"), "place", "reason",
                "stall_count", "total_ns",
            ]),
        "loss": row(
            "loss",
            [
                store.of("source"), "(select hex(uuid) from process_run where id = loss.run)",
                "reason", "report_count", "revision",
            ]),
        "run": row(
            "process_run",
            [
                "hex(uuid)", "app", "version", "hex(build_id)", "host", "pid", "boot_id",
                "start_ticks", "started_us", "os", "device",
            ]),
        "loop": row(
            "loop join process_run on process_run.id = loop.run",
            ["hex(uuid)", "name", "threshold_ns"]),
        "image": row("image", ["hash", "path", "hex(build_id)"]),
        "image load": row(
            "image_load",
            [
                "(select hex(uuid) from process_run where id = image_load.run)",
                "(select hash from image where id = image_load.image)", "load_address",
                "end_address",
            ]),
        "location": row("location", ["hash", "offset", "kind", "detail"]),
        "location namer": row("location", ["hash", store.of("location.namer")]),
        "name conflict": row(
            "name_conflict",
            [
                "(select hash from location where id = name_conflict.location)",
                store.of("name_conflict.source"),
            ]),
        "location frame": row(
            "location_frame",
            [
                "(select hash from location where id = location_frame.location)", "position",
                "(select hash from function where id = location_frame.function)", "line",
                "is_inlined",
            ]),
        "function": row("function", ["hash", "name", "raw_name", "file"]),
        "stack": row("stack", ["hash", "is_truncated"]),
        "watched loop": row("watched_loop", [store.of("source"), loop.of("watched_loop.loop")]),
        "run source": row(
            "run_source",
            [
                "(select hex(uuid) from process_run where id = run_source.run)",
                store.of("run_source.source"),
            ]),
        // Rows that no report is of any more, and which of two came second, are history.
        "signature": row(
            "signature", ["hash", "family", "title", "is_cut", "wait"],
            "where id in (select signature from report union select signature from rollup)"),
        "roll-up": row(
            "rollup",
            [
                "day_count", "first_day", cohort.of("rollup.cohort"),
                "(select hash || title from signature where id = rollup.signature)",
                "report_count", "total_ns", "cpu_ns", "min_ns", "max_ns", "first_us", "last_us",
                "hex(histogram)",
            ]),
        "host roll-up": row(
            "host_rollup",
            [
                "day_count", "first_day", cohort.of("host_rollup.cohort"),
                "(select name from host where id = host_rollup.host)", "report_count", "total_ns",
                "cpu_ns", "min_ns", "max_ns", "first_us", "last_us", "hex(histogram)",
            ]),
    ]

    private static func row(
        _ table: String, _ columns: [String], _ condition: String = ""
    ) -> String {
        let text = columns.map { "ifnull(\($0), '-')" }.joined(separator: " || '|' || ")
        return "select \(text) from \(table) \(condition)"
    }
}

extension String {
    fileprivate func of(_ column: String) -> String { replacing("%", with: column) }
}
