// Removes values that are out of range from a central store: older programs imported them, and their sums would
// overflow.

internal import StallArchive
internal import StallModel
internal import StallStore

/// Removes rows that hold values out of range, and cuts names that are too long. Works within the transaction of its
/// caller, which rebuilds groups and roll-ups.
func removeOutOfRange(_ connection: Connection) throws {
    // Reports hang on runs and loops: those are brought into range instead.
    let name = "substr(name, 1, \(ValueLimits.nameBytes / 4))"
    let limits = Dictionary(uniqueKeysWithValues: ValueLimits.conditions)
    try connection.prepare(
        """
        update or ignore loop set name = \(name), checksum = null,
            threshold_ns = case when threshold_ns between 0 and \(ValueLimits.duration_ns) then threshold_ns else id end
        where not (\(limits["loop"]!))
        """
    ).run()
    let clipped = ["app", "version", "host", "os", "device"].map {
        "\($0) = substr(\($0), 1, \(ValueLimits.nameBytes / 4))"
    }
    try connection.prepare(
        """
        update process_run set \(clipped.joined(separator: ", ")), checksum = null,
            pid = min(max(pid, 0), \(Int32.max)),
            uuid = case when length(uuid) = 16 then uuid else randomblob(16) end
        where not (\(limits["process_run"]!))
        """
    ).run()
    // Roll-ups are rebuilt from the reports; those of pruned ones are not.
    for table in [RollUpTable.groups, .hosts] {
        try connection.prepare(
            """
            delete from \(table.name)
            where cohort in (select id from cohort where not (\(limits["cohort"]!)))
            """
        ).run()
    }
    for table in [RollUpTable.groups, .hosts] {
        // Sums wrapped before. One that is less than its parts was beyond the largest number, where sums end now. Those of
        // 32 days are added up again from these.
        try connection.prepare(
            """
            update \(table.name) set total_ns = \(Int64.max)
            where day_count = 1 and total_ns < 0.999999 * min_ns * report_count
                and 1.0 * max_ns * report_count > 9.2e18
            """
        ).run()
        try connection.prepare("update \(table.name) set cpu_ns = \(Int64.max) where cpu_ns < 0")
            .run()
    }
    // A share that cannot be is no reason to lose the rest: the whole counts, as where none is known.
    for table in [RollUpTable.groups, .hosts] {
        try connection.prepare(
            """
            update \(table.name) set delayed_ns = 0
            where delayed_ns not between 0 and max(0, total_ns)
            """
        ).run()
    }
    try connection.prepare(
        "update report set delayed_ns = null where delayed_ns not between 0 and duration_ns"
    ).run()
    // Roll-ups of days before the oldest report stay: they cannot be computed again.
    try connection.prepare(
        """
        update grouping set hosts_from_day = null,
            pruned_before_us = (select min(start_us) from report where start_us >= 0)
        where not (\(limits["grouping"]!))
        """
    ).run()
    let kept: Set = ["loop", "process_run", "grouping"]
    for (table, condition) in ValueLimits.conditions where !kept.contains(table) {
        try connection.prepare("delete from \(table) where not (\(condition))").run()
    }
    try removeUnreadableReports(connection)
    let rows = try connection.prepare("select source, revision, loop, lengths from exposure")
    var broken: [(source: Int64, revision: Int64, loop: Int64)] = []
    while try rows.step() {
        guard LengthHistogram(encoded: rows.blob(at: 3)) == nil else { continue }
        broken.append(try (rows.integer(at: 0), rows.integer(at: 1), rows.integer(at: 2)))
    }
    let remove = try connection.prepare(
        "delete from exposure where source = ? and revision = ? and loop = ?")
    for row in broken { try remove.run(row.source, row.revision, row.loop) }
    try renewChecksums(connection)
    try Eviction(connection).collect(runsBefore: UnixTime(microseconds: .min))
}

/// Removes reports that hold an invalid phase, state, verdict, cause or list, or name a stack that is missing: no
/// reader accepts them.
private func removeUnreadableReports(_ connection: Connection) throws {
    let rows = try connection.prepare(
        "select \(ReportRow.selected()), report.source from report")
    let evidence = try EvidenceReader(connection)
    var stacks: Set<Int64> = []
    let known = try connection.prepare("select id from stack")
    while try known.step() { stacks.insert(try known.integer()) }
    var broken: [(source: Int64, seq: Int64)] = []
    while try rows.step() {
        do {
            let row = try ReportRow(rows)
            rows.skip(1)
            let named = row.samples.compactMap(\.stack) + row.threads.compactMap(\.stack)
            guard stacks.isSuperset(of: named) else { throw rows.damage("a stack is missing") }
            _ = try evidence.cause(ofReport: rows)
        } catch StoreError.damaged {
            rows.skipRest()
            broken.append(
                try (
                    rows.integer(at: ReportRow.selectedCount),
                    rows.integer(at: ReportRow.place(of: "seq"))
                ))
        }
    }
    let remove = try connection.prepare("delete from report where source = ? and seq = ?")
    for row in broken { try remove.run(row.source, row.seq) }
}

/// Accepts reports that differ from their checksums.
private func renewChecksums(_ connection: Connection) throws {
    let rows = try connection.prepare(
        "select \(ReportRow.selected()), checksum, source from report")
    var changed: [(source: Int64, seq: Int64)] = []
    while try rows.step() {
        rows.go(to: ReportRow.selectedCount)
        guard let checksum = rows.optionalInteger(),
            checksum != rows.checksum(of: ReportRow.checked, later: ReportRow.later)
        else {
            rows.skipRest()
            continue
        }
        changed.append(
            (try rows.integer(), try rows.integer(at: ReportRow.place(of: "seq"))))
    }
    let reports = try ReportRows(connection)
    for row in changed { try reports.renewChecksum(source: row.source, seq: row.seq) }
}
