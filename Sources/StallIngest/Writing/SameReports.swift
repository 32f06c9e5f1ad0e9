// One report is its id. The same one may come under another source: as a line that lost its origin, or with a store
// that was given another identity. Then it counts once.

internal import StallModel
import StallQuery
internal import StallStore

/// Finds reports that are here under another source. Works within the transaction of its caller; after a rollback,
/// `forget`.
///
/// **Cost:** nothing to speak of while each process's reports come from one source, as they nearly always do; else the
/// ids of the other source's reports are held in memory.
final class SameReports {
    private let connection: Connection
    private let reports: ReportRows
    private let grouping: Grouping
    private let content: ReportContent
    private let findRun, findSources, addSource, findNowhere, findID, allIDs: Statement
    private let remove, removeUnnamed: Statement
    private var runs: [Int64: Int64] = [:]
    private var sources: [Int64: Set<Int64>] = [:]
    private var ids: [Int64: [UniqueID: Int64]] = [:]
    private var nowhere: Int64??

    init(_ connection: Connection, reports: ReportRows, grouping: Grouping) throws {
        self.connection = connection
        self.reports = reports
        self.grouping = grouping
        content = try ReportContent(connection)
        findRun = try connection.prepare("select run from loop where id = ?")
        findSources = try connection.prepare("select source from run_source where run = ?")
        addSource = try connection.prepare(
            "insert or ignore into run_source (run, source) values (?, ?)")
        findNowhere = try connection.prepare("select id from source where store = ?")
        findID = try connection.prepare("select id from report where source = ? and seq = ?")
        allIDs = try connection.prepare("select id, seq from report where source = ?")
        remove = try connection.prepare("delete from report where source = ? and seq = ?")
        removeUnnamed = try connection.prepare(
            "delete from unnamed_report where source = ? and seq = ?")
    }

    func forget() {
        runs.removeAll(keepingCapacity: true)
        sources.removeAll(keepingCapacity: true)
        ids.removeAll()
        nowhere = nil
    }

    /// Whether the report is here already under another source, and is to stay there. One that this is a later state
    /// of, and one that came without its origin, make room instead.
    ///
    /// The answers of any order of import agree: of states of which not all have ended the last one by
    /// ``ReportProgress/surpasses(_:)`` and then by its content stays, and of those that have each version.
    ///
    /// - Parameter row: As it is about to be written, with the numbers of the central store.
    func holds(_ row: ReportRow, source: Int64) throws -> Bool {
        for other in try otherSources(of: row, than: source) {
            guard let seq = try seq(of: row.id, in: other),
                let known = try reports.progress(source: other, seq: seq)
            else { continue }
            let progress = ReportProgress(row)
            func isMore() throws -> Bool {
                // One with its origin makes room for none without.
                let nowhere = try nowhereSource()
                return try other == nowhere
                    || source != nowhere && content.isMore(row, thanOf: other, seq: seq)
            }
            if row.state == .ended, known.state == .ended {
                // Two that both ended, and say different things, are two versions: both stay.
                guard try reports.holds(row, source: other, seq: seq) else { continue }
                guard try isMore() else { return true }
            } else if try known.surpasses(progress) || !progress.surpasses(known) && !isMore() {
                // The stored report has the later state.
                return true
            }
            try makeRoom(source: other, seq: seq, row.id)
        }
        return false
    }

    /// Whether another source has a report of the row's stall that is not open: then its end is to be compared.
    func isClosedElsewhere(_ row: ReportRow, source: Int64) throws -> Bool {
        try otherSources(of: row, than: source).contains { other in
            guard let seq = try seq(of: row.id, in: other) else { return false }
            return try reports.progress(source: other, seq: seq)?.isOpen == false
        }
    }

    /// Removes a report of a copy that knows less of it: both continued a stall that had not ended when they were made.
    ///
    /// - Returns: Whether there is room now.
    func makeRoom(for row: ReportRow, in source: Int64) throws -> Bool {
        guard let known = try reports.progress(source: source, seq: row.seq) else { return true }
        guard ReportProgress(row).surpasses(known) else { return false }
        try makeRoom(source: source, seq: row.seq, row.id)
        return true
    }

    /// Whether the source has a longer record of the row's stall, under the same number. Within one agent's store a later
    /// record is never shorter: the row then comes from a copy, none of whose other reports are here.
    ///
    /// A hang may be open again: ingest turns an open stall into one when it does not find the process.
    func isSurpassed(_ row: ReportRow, in source: Int64) throws -> Bool {
        guard let known = try reports.progress(source: source, seq: row.seq) else { return false }
        return known.surpasses(ReportProgress(row)) && !(known.state == .hang && row.state == .open)
    }

    /// Notes a report that was written.
    func note(_ row: ReportRow, source: Int64) throws {
        let run = try run(ofLoop: row.loop)
        if try !sourcesOf(run).contains(source) {
            try addSource.run(run, source)
            sources[run]?.insert(source)
        }
        if ids[source] != nil { ids[source]?[row.id] = row.seq }
    }

    private func otherSources(of row: ReportRow, than source: Int64) throws -> [Int64] {
        let known = try sourcesOf(run(ofLoop: row.loop))
        let nowhere = try nowhereSource()
        // Nearly always.
        if nowhere == nil, known.isEmpty || known.count == 1 && known.contains(source) { return [] }
        var others = known.subtracting([source])
        // Lines of other programs may not contain the run that a report is of.
        if let nowhere, nowhere != source { others.insert(nowhere) }
        return others.sorted()
    }

    private func run(ofLoop loop: Int64) throws -> Int64 {
        if let run = runs[loop] { return run }
        guard let run = try findRun.found(loop) else { throw findRun.damage("a loop of no run") }
        runs[loop] = run
        return run
    }

    private func sourcesOf(_ run: Int64) throws -> Set<Int64> {
        if let known = sources[run] { return known }
        var found: Set<Int64> = []
        try findSources.bind(run)
        while try findSources.step() { found.insert(try findSources.integer()) }
        sources[run] = found
        return found
    }

    private func nowhereSource() throws -> Int64? {
        if let nowhere { return nowhere }
        let found = try findNowhere.found(LineImporter.nowhere)
        nowhere = .some(found)
        return found
    }

    /// A source was added.
    func noteSource() { nowhere = nil }

    private func seq(of id: UniqueID, in source: Int64) throws -> Int64? {
        if try source == nowhereSource() {
            let seq = LineImporter.originNowhere(id).seq
            try findID.bind(source, seq)
            defer { findID.reset() }
            return try findID.step() && findID.uniqueID() == id ? seq : nil
        }
        if let known = ids[source] { return known[id] }
        var found: [UniqueID: Int64] = [:]
        try allIDs.bind(source)
        while try allIDs.step() {
            let id = try allIDs.uniqueID()
            found[id] = try allIDs.integer()
        }
        ids[source] = found
        return found[id]
    }

    private func makeRoom(source: Int64, seq: Int64, _ id: UniqueID) throws {
        if let counted = try reports.counted(source: source, seq: seq) {
            try grouping.discount(counted)
        }
        try remove.run(source, seq)
        try removeUnnamed.run(source, seq)
        ids[source]?[id] = nil
    }
}
