// Finds rows of a process that came under another source. A store that was given another identity brings rows that are
// here already, and they are not imported again: its own source stays without them.

internal import StallModel
internal import StallQuery
internal import StallStore

/// The sources that a process's reports came from. Works within the transaction of its caller, and holds nothing.
struct RunSources {
    private let interner: Interner
    private let findReport, findExposure: Statement

    init(_ connection: Connection, interner: Interner) throws {
        self.interner = interner
        // A line without an origin may not name the process that its report is of.
        findReport = try connection.prepare(
            """
            select exists (
                select 1 from run_source join report on report.source = run_source.source
                    and report.seq = ?2
                where run_source.run = ?1 and report.id = ?3
            ) or exists (
                select 1 from source join report on report.source = source.id and report.seq = ?4
                where source.store = ?5 and report.id = ?3)
            """)
        findExposure = try connection.prepare(
            """
            select exists (
                select 1 from run_source join exposure on exposure.source = run_source.source
                    and exposure.revision = ?2
                join loop on loop.id = exposure.loop and loop.run = run_source.run
                where run_source.run = ?1 and exposure.start_us = ?3)
            """)
    }

    /// Whether a source has the report of this number and id.
    func holds(_ report: IncomingStore.ReportKey, of run: ProcessRun) throws -> Bool {
        guard let run = try interner.knownRun(run) else { return false }
        return try findReport.number(
            run, report.seq, report.id, LineImporter.originNowhere(report.id).seq,
            LineImporter.nowhere) == 1
    }

    /// Whether a source has the stretch of watched time of this revision and start.
    func holds(_ stretch: IncomingStore.ExposureKey, of run: ProcessRun) throws -> Bool {
        guard let run = try interner.knownRun(run) else { return false }
        return try findExposure.number(run, stretch.revision, stretch.start_us) == 1
    }
}
