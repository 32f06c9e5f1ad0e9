// A part of a cluster's rows as a store in memory, of the usual schema, so that questions about few reports, and the last step
// of those about many, are answered by the code that answers them for a file.

internal import StallArchive
internal import StallModel
internal import StallQuery
internal import StallStore

/// A store in memory that is filled with rows of a cluster. Rows have the numbers in which they came.
///
/// **Thread safety:** one thread at a time.
final class Excerpt {
    let connection: Connection
    /// Answers from what is in it.
    let store: ReportStore

    private(set) var sources = RowNumbers<UniqueID>()
    private(set) var runs = RowNumbers<UniqueID>()
    /// By their hashes in the cluster.
    private(set) var loops = RowNumbers<Int64>()
    /// By their keys in the cluster.
    private(set) var signatures = RowNumbers<Int64>()
    private var labels = RowNumbers<String>()
    private let addSource, addRun, addLoop, addSignature, addFrame, addLabel: Statement

    /// - Parameters:
    ///   - name: The cluster's, for messages.
    ///   - grouping: As the cluster has it.
    init(of name: String, _ grouping: GroupingRow?) throws {
        connection = try Connection(to: "", as: name, .inMemory)
        try connection.execute("pragma application_id = \(StoreRole.central.rawValue)")
        try connection.execute("begin")
        try connection.execute(newestSchema)
        if let grouping {
            let add = try connection.prepare(
                """
                insert into grouping (id, rules_hash, pruned_before_us, hosts_from_day, has_exposure_days)
                values (1, ?, ?, ?, 0)
                """)
            try add.run(grouping.rulesHash, grouping.prunedBefore?.microseconds, Int64.min)
        }
        try connection.execute("commit")
        store = ReportStore(
            excerpt: StoreFile(
                path: name, connection: connection, role: .central,
                schemaVersion: newestSchemaVersion))
        addSource = try connection.prepare("insert into source (id, store) values (?, ?)")
        addRun = try connection.prepare(
            """
            insert into process_run (id, uuid, app, version, build_id, host, pid, boot_id,
                start_ticks, started_us, os, device) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        addLoop = try connection.prepare(
            "insert into loop (id, run, name, threshold_ns) values (?, ?, ?, ?)")
        addSignature = try connection.prepare(
            """
            insert into signature (id, hash, family, title, is_cut, wait, has_app_frame, is_variant)
            values (?1, ?2, ?3, ?4, ?5, ?6, ?7,
                exists (select 1 from signature where hash = ?2))
            """)
        addFrame = try connection.prepare(
            "insert into signature_frame (signature, position, name) values (?, ?, ?)")
        addLabel = try connection.prepare("insert into label (id, value) values (?, ?)")
    }

    /// Adds rows in one transaction.
    func fill(_ body: () throws -> Void) throws {
        try connection.execute("begin")
        do {
            try body()
            try connection.execute("commit")
        } catch {
            try? connection.execute("rollback")
            throw error
        }
    }

    /// The row of a source, which is added when it is new.
    func source(_ store: UniqueID) throws -> Int64 {
        let (id, isNew) = sources.number(of: store)
        if isNew { try addSource.run(id, store) }
        return id
    }

    /// The row of a mode or an activity.
    func label(_ text: String) throws -> Int64 {
        let (id, isNew) = labels.number(of: text)
        if isNew { try addLabel.run(id, text) }
        return id
    }

    func run(_ run: ProcessRun) throws -> Int64 {
        let (id, isNew) = runs.number(of: run.id)
        if isNew {
            try addRun.run(
                id, run.id, run.app, run.version, run.buildID?.bytes, run.host, Int64(run.pid),
                run.bootID, Int64(bitPattern: run.startTicks), run.started.microseconds, run.os,
                run.device)
        }
        return id
    }

    /// - Parameter hash: The loop's in the cluster.
    func loop(_ hash: Int64, run: Int64, name: String, threshold_ns: Int64) throws -> Int64 {
        let (id, isNew) = loops.number(of: hash)
        if isNew { try addLoop.run(id, run, name, threshold_ns) }
        return id
    }

    /// - Parameter key: The group's in the cluster.
    func signature(_ key: Int64, _ group: ReportGroup) throws -> Int64 {
        let (id, isNew) = signatures.number(of: key)
        guard isNew else { return id }
        try addSignature.run(
            id, group.signature, group.family, group.title, group.isCut, group.wait?.rawValue,
            !group.isWithoutAppFrame)
        for (position, name) in group.frames.enumerated() {
            try addFrame.run(id, Int64(position), name)
        }
        return id
    }
}

/// Numbers rows from 1, in order of first occurrence.
struct RowNumbers<Key: Hashable> {
    private(set) var numbers: [Key: Int64] = [:]
    private(set) var keys: [Key] = []

    mutating func number(of key: Key) -> (Int64, isNew: Bool) {
        if let known = numbers[key] { return (known, false) }
        let number = Int64(keys.count + 1)
        numbers[key] = number
        keys.append(key)
        return (number, true)
    }

    subscript(key: Key) -> Int64? { numbers[key] }

    func contains(_ key: Key) -> Bool { numbers[key] != nil }

    /// The key of a row; nil for a number that none has.
    func key(of number: Int64) -> Key? {
        guard number >= 1, number <= keys.count else { return nil }
        return keys[Int(number) - 1]
    }
}
