// Checks that a store is as it was written: by SQLite's own checks, and by content hashes for the rest.

internal import StallArchive
import StallModel
package import StallQuery
package import StallStore

/// A fault that a check found.
package struct StoreFault: Hashable, Sendable, CustomStringConvertible {
    /// The fault, in a clause.
    package var description: String
    /// It is in a part that `repairStore` rebuilds.
    package var isRepairable: Bool
}

/// Removes values that are out of range from a central store, decides the groups of all its reports and adds up its
/// roll-ups again. Other reports are not changed.
package func repairStore(
    path: String, grouper: any ReportGrouper
) throws(StoreError) {
    guard FileFacts(path) != nil else { throw .missing(path: path) }
    let file = try StoreFile.openForWriting(
        path: path, role: .central, followsLinks: true, wait: .seconds(60))
    let connection = file.connection
    try connection.transaction(.immediate) {
        try removeOutOfRange(connection)
        let grouping = try Grouping(connection, grouper)
        try grouping.follow()
        try grouping.rebuild()
        try ExposureDays(connection).rebuild()
    }
    try file.close()
}

/// Everything that is wrong with a store; empty for a sound one. Reads all of it.
///
/// - Parameter limit: Stops after this many faults.
package func checkStore(
    path: String, limit: Int = 100
) throws(StoreError) -> [StoreFault] {
    let file = try StoreFile.openForReading(path: path, wait: .seconds(5))
    return try file.connection.transaction(.deferred) {
        var check = StoreCheck(file.connection, limit: limit)
        try check.run()
        return check.faults
    }
}

/// Notes about a store without faults.
package func storeNotes(path: String) throws(StoreError) -> [String] {
    let file = try StoreFile.openForReading(path: path, wait: .seconds(5))
    let connection = file.connection
    func count(_ sql: String) throws(StoreError) -> Int64 {
        try connection.prepare("select count(*) from \(sql)").number()
    }
    var notes: [String] = []
    let conflicts = try count("(select distinct location from name_conflict)")
    if conflicts > 0 {
        notes.append(
            "\(conflicts) locations have other symbols in some sources; the first are kept "
                + "(stallctl symbolicate decides)")
    }
    let namesakes = try StoreError.catching(path: path) { try namesakeCount(connection) }
    if namesakes > 0 {
        notes.append(
            "\(namesakes) process runs have the identifier of another app, version or host; "
                + "each keeps its own reports")
    }
    let copies = try count("source where origin is not null")
    if copies > 0 {
        notes.append("\(copies) sources are copies of others that went their own way")
    }
    return notes
}

/// The process runs whose identifier another run had (ProcessRun+Namesake.swift): each has one that is made of the other's.
private func namesakeCount(_ connection: Connection) throws -> Int {
    let rows = try connection.prepare("select uuid, app, version, host from process_run")
    var ids: [UniqueID] = []
    var candidates: [(id: UniqueID, app: String, version: String, host: String)] = []
    while try rows.step() {
        let id = try rows.uniqueID()
        ids.append(id)
        guard id.bytes[6] >> 4 == 8 else {
            rows.skipRest()
            continue
        }
        candidates.append((id, rows.text(), rows.text(), rows.text()))
    }
    // Others' identifiers may look like ours: a store that was made to have many is not compared for hours.
    let most = 5_000_000 / max(ids.count, 1)
    return candidates.prefix(most).count { run in
        ids.contains {
            ProcessRun.namesake(of: $0, app: run.app, version: run.version, host: run.host)
                == run.id
        }
    }
}

private struct StoreCheck {
    let connection: Connection
    let limit: Int
    private(set) var faults: [StoreFault] = []

    init(_ connection: Connection, limit: Int) {
        self.connection = connection
        self.limit = limit
    }

    mutating func run() throws {
        try checkFile()
        // Rows that SQLite cannot read cannot be hashed either.
        guard faults.isEmpty else { return }
        try checkRanges()
        try checkNames()
        let images = try checkImages()
        let locations = try checkLocations(images)
        try checkFunctions()
        let stacks = try checkStacks(locations)
        try checkEvidence()
        try checkReports(stacks)
        guard faults.isEmpty else { return }
        var check = RollUpCheck(connection)
        try check.run { complain($0, isRepairable: true) }
    }

    private mutating func complain(_ fault: String, isRepairable: Bool = false) {
        guard faults.count < limit else { return }
        faults.append(StoreFault(description: fault, isRepairable: isRepairable))
    }

    /// The pages, indexes and references.
    private mutating func checkFile() throws {
        let integrity = try connection.prepare("pragma integrity_check(\(limit))")
        while try integrity.step() {
            let verdict = integrity.text()
            if verdict != "ok" { complain(verdict) }
        }
        let references = try connection.prepare("pragma foreign_key_check")
        while try references.step() {
            complain(
                "a \(references.text(at: 0)) names a \(references.text(at: 2)) that is missing")
        }
    }

    /// Finds values that make sums leave the range of a number, or a reader hold too much.
    private mutating func checkRanges() throws {
        for (table, condition) in ValueLimits.conditions {
            let count = try connection.prepare(
                "select count(*) from \(table) where not (\(condition))"
            ).number()
            if count > 0 {
                complain("\(count) of \(table) hold a value out of range", isRepairable: true)
            }
        }
        let rows = try connection.prepare("select lengths from exposure")
        var count = 0
        while try rows.step() {
            if LengthHistogram(encoded: rows.blob()) == nil { count += 1 }
        }
        if count > 0 {
            complain(
                "\(count) of exposure hold iteration lengths that are none", isRepairable: true)
        }
    }

    /// The rows that have a checksum instead of a content hash.
    private mutating func checkNames() throws {
        for (table, columns, checked, later) in [
            ("process_run", ProcessRun.columns, ProcessRun.checked, ProcessRun.later),
            ("loop", "run, name, threshold_ns", 0..<3, 3..<3), ("label", "value", 0..<1, 1..<1),
        ] as [(String, String, Range<CInt>, Range<CInt>)] {
            let count = later.upperBound
            let rows = try connection.prepare("select \(columns), checksum, id from \(table)")
            while try rows.step() {
                guard let checksum = rows.optionalInteger(at: count),
                    checksum != rows.checksum(of: checked, later: later)
                else { continue }
                complain(
                    "\(table) \(try rows.integer(at: count + 1)) was changed after it was written (checksum mismatch)"
                )
            }
        }
    }

    private mutating func checkImages() throws -> [Int64: Int64] {
        let rows = try connection.prepare(
            """
            select image.id, image.hash, image.path, image.build_id, process_run.uuid
            from image left join process_run on process_run.id = image.run
            """)
        return try check(rows, "image") { row in
            ContentHash.image(
                path: row.optionalText(), buildID: row.optionalBytes(),
                run: try row.optionalUniqueID())
        }
    }

    private mutating func checkLocations(_ images: [Int64: Int64]) throws -> [Int64: Int64] {
        let rows = try connection.prepare("select id, hash, image, offset, kind from location")
        return try check(rows, "location") { row in
            let (image, offset, kind) = try (row.integer(), row.integer(), row.integer())
            return images[image].map { ContentHash.location(image: $0, offset: offset, kind: kind) }
        }
    }

    private mutating func checkFunctions() throws {
        let rows = try connection.prepare("select id, hash, name, raw_name, file from function")
        _ = try check(rows, "function") { row in
            ContentHash.function(
                name: row.optionalText(), rawName: row.optionalText(), file: row.optionalText())
        }
    }

    private mutating func checkStacks(_ locations: [Int64: Int64]) throws -> Set<Int64> {
        let rows = try connection.prepare("select id, hash, is_truncated, locations from stack")
        let stacks = try check(rows, "stack") { row in
            let isTruncated = try row.integer() != 0
            guard let entries = [StackEntry](encoded: row.blob()) else { return nil }
            let places = entries.compactMap { entry in
                locations[entry.location].map { (location: $0, isGuessed: entry.isGuessed) }
            }
            guard places.count == entries.count else { return nil }
            return ContentHash.stack(places, isTruncated: isTruncated)
        }
        return Set(stacks.keys)
    }

    private mutating func checkEvidence() throws {
        let rows = try connection.prepare(
            """
            select evidence.id, evidence.hash, evidence_fact.name, evidence_fact.format
            from evidence left join evidence_fact on evidence_fact.evidence = evidence.id
            order by evidence.id, evidence_fact.position
            """)
        var (last, hash, facts): (Int64?, Int64, [EvidenceFact]) = (nil, 0, [])
        func isAsWritten() -> Bool { last == nil || facts.hash == hash }
        while try rows.step() {
            let (id, stored) = (try rows.integer(), try rows.integer())
            if id != last {
                if !isAsWritten(), let last { complainOfEvidence(last) }
                (last, hash, facts) = (id, stored, [])
            }
            facts.append(
                EvidenceFact(name: rows.text(), format: rows.text(), firstNumber: 0))
        }
        if !isAsWritten(), let last { complainOfEvidence(last) }
    }

    private mutating func complainOfEvidence(_ id: Int64) {
        complain("evidence \(id) was changed after it was written (checksum mismatch)")
    }

    private mutating func checkReports(_ stacks: Set<Int64>) throws {
        let rows = try connection.prepare(
            """
            select id, phase, state, verdict, duration_ns, cpu_ns, detection_delay_ns, samples,
                cause, cause_confidence, cause_detail, threads, checksum, \(ReportRow.selected())
            from report
            """)
        let evidence = try EvidenceReader(connection)
        let columns = 13..<ReportRow.checked.upperBound + 13
        let later = columns.upperBound..<ReportRow.later.upperBound + 13
        while try rows.step() {
            do {
                let _: LoopPhase = try rows.value(at: 1)
                let _: StallState = try rows.value(at: 2)
                let _: StallVerdict = try rows.value(at: 3)
                for column: CInt in 4...6 { _ = try rows.duration_ns(at: column) }
                for stack in try rows.samples(at: 7).compactMap(\.stack)
                where !stacks.contains(stack) {
                    throw rows.damage("a sample refers to stack \(stack), which is missing")
                }
                _ = try evidence.cause(rows, at: 8, evidence: columns.upperBound)
                for stack in try rows.threads(at: 11).compactMap(\.stack)
                where !stacks.contains(stack) {
                    throw rows.damage("a thread refers to stack \(stack), which is missing")
                }
                // A repair accepts the row's content: the one that was written is not known.
                if let checksum = rows.optionalInteger(at: 12),
                    checksum != rows.checksum(of: columns, later: later)
                {
                    complain(
                        "report \(rows.blob(at: 0).hexadecimal): its row was changed after it was written (checksum mismatch)",
                        isRepairable: true)
                    continue
                }
            } catch StoreError.damaged(_, let detail) {
                complain("report \(rows.blob(at: 0).hexadecimal): \(detail)", isRepairable: true)
            }
        }
    }

    /// Compares each row's hash, in the second column, with that of its content; nil for content
    /// that has none.
    ///
    /// - Returns: The hashes by the rows' numbers.
    private mutating func check(
        _ rows: Statement, _ noun: String, _ hash: (Statement) throws -> Int64?
    ) throws -> [Int64: Int64] {
        var hashes: [Int64: Int64] = [:]
        while try rows.step() {
            let (id, stored) = try (rows.integer(), rows.integer())
            hashes[id] = stored
            if try hash(rows) != stored {
                complain("\(noun) \(id) was changed after it was written (checksum mismatch)")
            }
        }
        return hashes
    }
}
