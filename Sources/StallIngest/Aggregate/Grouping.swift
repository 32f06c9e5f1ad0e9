// Groups and roll-ups of a central store, kept in step with its reports: within the transaction that
// changes a report, its group and the totals change too.

internal import StallArchive
internal import StallModel
internal import StallQuery
internal import StallStore

/// Decides groups and keeps roll-ups. Works within the transaction of its caller; after a rollback,
/// `forget`.
final class Grouping {
    private let connection: Connection
    private let decider: GroupDecider
    private let dimensions: RollUpDimensions
    private let rollUps: RollUpWriter
    /// Notes the same changes, by host.
    private let hostRollUps: RollUpWriter
    /// Most buckets are met again and again: writing one costs more than keeping its changes in memory. At most this
    /// many are kept.
    private let changeLimit: Int
    /// When a store is only staged for another one, only the groups and days of its reports are computed.
    var keepsTotals = true { didSet { rollUps.keepsTotals = keepsTotals } }
    private let addUnnamed, removeUnnamed, setSignature, setState: Statement
    private let setText, addText: Statement
    private let findWatched, addWatched, findReports: Statement
    /// The rules for a store without groups. Any other store has its own.
    private let grouper: any ReportGrouper
    /// The rules of the store that the decider follows.
    private var followed: StoredRules?
    /// Locations whose names changed in this batch.
    private var renamed: Set<Int64> = []
    /// Some of them had been looked up before, so that any report may show them.
    private var renamesKnown = false
    /// How many reports a rebuild moved from one group's row to another's.
    private(set) var moves: [Move: Int] = [:]

    struct Move: Hashable {
        var from: Int64?
        var to: Int64
    }

    init(
        _ connection: Connection, _ grouper: any ReportGrouper, changeLimit: Int = 250_000
    ) throws {
        self.connection = connection
        self.changeLimit = changeLimit
        self.grouper = grouper
        let signatures = try SignatureWriter(connection)
        decider = try GroupDecider(connection, grouper) { try signatures.row(of: $0) }
        dimensions = try RollUpDimensions(connection)
        rollUps = try RollUpWriter(connection)
        hostRollUps = try RollUpWriter(connection, .hosts)
        addUnnamed = try connection.prepare(
            "insert or ignore into unnamed_report (source, seq) values (?, ?)")
        removeUnnamed = try connection.prepare(
            "delete from unnamed_report where source = ? and seq = ?")
        setSignature = try connection.prepare(
            "update report set signature = ? where source = ? and seq = ?")
        findWatched = try connection.prepare(
            "select count(*) from watched_loop where source = ? and loop = ?")
        addWatched = try connection.prepare("insert into watched_loop (source, loop) values (?, ?)")
        findReports = try connection.prepare(
            "select \(CountedReport.columns) from report where source = ?")
        setState = try connection.prepare(
            """
            insert into grouping (id, rules_hash, rules_text) values (1, ?, ?)
            on conflict do update
            set rules_hash = excluded.rules_hash, rules_text = excluded.rules_text
            """)
        setText = try connection.prepare("update grouping set rules_text = ?")
        // One that is too long to be read is kept.
        addText = try connection.prepare(
            "update grouping set rules_text = ? where rules_text is null")
    }

    /// How many reports of a host and day were noted and are not in roll-ups yet.
    func notedCount(host: String, day: Int64) throws -> Int64 {
        guard let host = try dimensions.host(named: host) else { return 0 }
        return hostRollUps.notedCount(day: day, signature: host)
    }

    /// Forgets which rows there are, and all noted changes that were not written.
    func forget() throws {
        try decider.forget()
        dimensions.forget()
        rollUps.forget()
        hostRollUps.forget()
        renamed.removeAll()
        renamesKnown = false
    }

    /// The state that the rollback of a file returns to.
    var mark: Int { rollUps.mark }
    func rollBack(to mark: Int) throws {
        rollUps.rollBack(to: mark)
        hostRollUps.rollBack(to: mark)
        try decider.forget()
        dimensions.forget()
    }

    /// Takes the store's rules; groups all reports where that was never done, or totals are missing.
    ///
    /// Only ``regroupReports(_:_:)`` gives a store other rules than it has.
    func bringUpToDate() throws {
        let isGrouped = try follow()
        if try !isGrouped || !connection.hasHostRollUps { try rebuild() }
        try ExposureDays(connection).bringUpToDate()
    }

    /// Decides by the rules of the store from now on, whatever was brought.
    ///
    /// - Returns: Whether the store has any.
    @discardableResult
    func follow() throws -> Bool {
        guard let stored = try connection.storedRules() else { return false }
        if stored != followed {
            try decider.use(grouper.following(stored))
            followed = stored
        }
        if let text = stored.text {
            // A store that was grouped before it kept the text has that of the first job:
            // wrong where the hash is of others.
            if stored.hash == grouper.rulesHash, !grouper.hasRules(ofText: text) {
                try setText.run(grouper.rulesText)
            }
        } else {
            // All jobs then follow the same rules.
            try addText.run(decider.grouper.rulesText)
        }
        return true
    }

    /// Decides the group of a report that is about to be written.
    func decide(_ row: inout ReportRow, source: Int64) throws {
        let decision = try decider.decide(
            row.samples, of: row.duration_ns, cause: CountedReport(row, source: source).cause,
            executable: dimensions.loop(row.loop).buildID)
        row.signature = decision.signature
        if !decision.isNamed { try addUnnamed.run(source, row.seq) }
    }

    /// Counts a report that was written, instead of its older state.
    func count(_ row: ReportRow, source: Int64, after outcome: ReportRows.Outcome) throws {
        if case .changed(let before) = outcome { try remove(before) }
        try add(CountedReport(row, source: source))
    }

    /// Counts a report by the current content of its row.
    func recount(_ before: CountedReport, as after: CountedReport) throws {
        try remove(before)
        try add(after)
    }

    /// Takes a report that is about to be deleted out of the totals.
    func discount(_ report: CountedReport) throws { try remove(report) }

    private func add(_ report: CountedReport) throws {
        guard let signature = report.signature else { return }
        guard keepsTotals else {
            return rollUps.add(report.entry, dimension: 0, signature: signature)
        }
        let dimension = try dimensions.id(of: report)
        let host = try dimensions.host(ofLoop: report.loop)
        rollUps.add(report.entry, dimension: dimension, signature: signature)
        hostRollUps.add(report.entry, dimension: dimension, signature: host)
    }

    private func remove(_ report: CountedReport) throws {
        guard keepsTotals, let signature = report.signature else { return }
        let dimension = try dimensions.id(of: report)
        let host = try dimensions.host(ofLoop: report.loop)
        rollUps.remove(report.entry, dimension: dimension, signature: signature)
        hostRollUps.remove(report.entry, dimension: dimension, signature: host)
    }

    /// Loops of a source are found to have recorded their watched time: their reports count in other dimension rows
    /// from now on.
    ///
    /// **Cost:** for loops that were not known to, it grows with the reports that the source has already.
    func noteWatched(_ loops: Set<Int64>, source: Int64) throws {
        let added = try loops.filter { try findWatched.number(source, $0) == 0 }
        guard !added.isEmpty else { return }
        // Buckets of days that were pruned stay as they are.
        let first = try connection.firstWholeDay() ?? .min
        var reports: [CountedReport] = []
        try findReports.bind(source)
        while try findReports.step() {
            let report = try CountedReport(findReports)
            if added.contains(report.loop), report.entry.start_us.day >= first {
                reports.append(report)
            }
        }
        for report in reports { try remove(report) }
        for loop in added { try addWatched.run(source, loop) }
        dimensions.forget(source: source, loops: added)
        for report in reports { try add(report) }
    }

    /// A location of this store has other names now: reports that show it may belong to other groups.
    func noteNames(ofLocation location: Int64, wasLookedUp: Bool) {
        renamed.insert(location)
        renamesKnown = renamesKnown || wasLookedUp
    }

    /// Writes the noted changes: the last step before a commit.
    func flush() throws {
        if !renamed.isEmpty { try regroup() }
        try flushRollUps()
    }

    /// Writes roll-ups when much was noted of one file. Nothing of other files may be noted then: it
    /// would be rolled back with this one.
    func flushMany() throws {
        if rollUps.mark > changeLimit { try flushRollUps() }
    }

    private func flushRollUps() throws {
        try rollUps.flush { try entries(ofDay: $0) { _, signature in signature } }
        try hostRollUps.flush {
            try entries(ofDay: $0) { report, _ in try dimensions.host(ofLoop: report.loop) }
        }
    }

    /// Decides the groups of reports that show locations with new names.
    private func regroup() throws {
        let stacks = try self.stacks(with: renamed)
        try decider.forget()
        // Most names come shortly after their report: then few reports can be concerned.
        let reports =
            renamesKnown
            ? "report"
            : "unnamed_report join report using (source, seq)"
        let rows = try connection.prepare(
            "select report.samples, \(CountedReport.columns) from \(reports)")
        var concerned: [(CountedReport, [StoredSample])] = []
        while try rows.step() {
            let samples = try rows.samples()
            guard samples.contains(where: { $0.stack.map(stacks.contains) ?? false }) else {
                rows.skipRest()
                continue
            }
            concerned.append((try CountedReport(rows), samples))
        }
        for (report, samples) in concerned { try regroup(report, samples) }
        renamed.removeAll()
        renamesKnown = false
    }

    private func regroup(_ report: CountedReport, _ samples: [StoredSample]) throws {
        let (source, seq) = (report.entry.source, report.entry.seq)
        let decision = try decider.decide(
            samples, of: report.entry.duration_ns, cause: report.cause,
            executable: dimensions.loop(report.loop).buildID)
        if decision.isNamed {
            try removeUnnamed.run(source, seq)
        } else {
            try addUnnamed.run(source, seq)
        }
        guard decision.signature != report.signature else { return }
        try setSignature.run(decision.signature, source, seq)
        try remove(report)
        var report = report
        report.signature = decision.signature
        try add(report)
    }

    private func stacks(with locations: Set<Int64>) throws -> Set<Int64> {
        var stacks: Set<Int64> = []
        let rows = try connection.prepare("select id, locations from stack")
        while try rows.step() {
            let id = try rows.integer()
            guard let entries = [StackEntry](encoded: rows.blob()) else {
                throw rows.damage("a stack is not a list of locations")
            }
            if entries.contains(where: { locations.contains($0.location) }) { stacks.insert(id) }
        }
        return stacks
    }

    /// Deletes the roll-ups of days before the one that a time is in.
    func deleteRollUps(before time: UnixTime) throws {
        try rollUps.delete(before: time.microseconds.day)
        try hostRollUps.delete(before: time.microseconds.day)
    }

    /// The reports of a day with the buckets that they count in; nil when some were pruned.
    ///
    /// - Parameter key: The bucket of a report besides day and dimensions, given its signature.
    private func entries(
        ofDay day: Int64, _ key: (CountedReport, _ signature: Int64) throws -> Int64
    ) throws -> [(RollUpCell, RollUpEntry)]? {
        guard try day >= connection.firstWholeDay() ?? .min else { return nil }
        let rows = try connection.prepare(
            """
            select \(CountedReport.columns) from report_day join report
            on report.source = report_day.source
                and report.seq between report_day.first_seq and report_day.last_seq
            where report_day.day = ? and report.start_us >= ? and report.start_us < ?
            """)
        let start = day * .microsecondsOfDay
        try rows.bind(day, start, start + .microsecondsOfDay)
        var entries: [(RollUpCell, RollUpEntry)] = []
        while try rows.step() {
            let report = try CountedReport(rows)
            guard let signature = report.signature else { continue }
            let cell = RollUpCell(
                day: report.entry.start_us.day, dimension: try dimensions.id(of: report),
                signature: try key(report, signature))
            entries.append((cell, report.entry))
        }
        return entries
    }

    /// Decides all groups by the decider's rules, and adds everything up again. Roll-ups of days whose reports were
    /// pruned stay as they are: they cannot be computed again.
    func rebuild() throws {
        try forget()
        moves.removeAll()
        let first = try connection.firstWholeDay() ?? .min
        try rollUps.delete(from: first)
        try hostRollUps.delete(from: first)
        try connection.prepare("delete from unnamed_report").run()
        try connection.prepare("delete from report_day").run()
        try connection.prepare(
            "insert or ignore into watched_loop select distinct source, loop from exposure"
        ).run()
        try connection.prepare(
            "delete from signature_frame where signature not in (select id from signature)"
        ).run()
        try rollUps.addUpLong()
        try hostRollUps.addUpLong()
        let rows = try connection.prepare(
            """
            select \(CountedReport.columns), report.samples from report
            where (source, seq) > (?, ?) order by source, seq limit 20000
            """)
        var last: (source: Int64, seq: Int64) = (.min, .min)
        while true {
            try rows.bind(last.source, last.seq)
            var batch: [(CountedReport, [StoredSample])] = []
            while try rows.step() {
                batch.append((try CountedReport(rows), try rows.samples()))
            }
            guard let end = batch.last?.0.entry else { break }
            last = (end.source, end.seq)
            for (report, samples) in batch { try rebuild(report, samples, from: first) }
            try flushMany()
        }
        try flushRollUps()
        try setState.run(decider.grouper.rulesHash, decider.grouper.rulesText)
        try connection.prepare(
            "update grouping set hosts_from_day = ifnull(hosts_from_day, ?)"
        ).run(first)
    }

    private func rebuild(
        _ report: CountedReport, _ samples: [StoredSample], from firstWholeDay: Int64
    ) throws {
        var report = report
        let (source, seq) = (report.entry.source, report.entry.seq)
        let decision = try decider.decide(
            samples, of: report.entry.duration_ns, cause: report.cause,
            executable: dimensions.loop(report.loop).buildID)
        if !decision.isNamed { try addUnnamed.run(source, seq) }
        if decision.signature != report.signature {
            moves[Move(from: report.signature, to: decision.signature), default: 0] += 1
            try setSignature.run(decision.signature, source, seq)
            report.signature = decision.signature
        }
        if report.entry.start_us.day >= firstWholeDay {
            try add(report)
        } else {
            rollUps.noteDay(of: report.entry)
        }
    }
}
