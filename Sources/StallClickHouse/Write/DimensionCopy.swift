// The rows that many reports share, sent to every shard; and the hashes by which reports refer to them, instead of row
// numbers.

internal import StallModel
internal import StallStore

/// The hashes that the row numbers of a store stand for.
struct StoredKeys {
    /// A loop in the form of a report.
    struct Loop {
        var hash: Int64
        var app: String
        /// `version`, `build_id`, `host` and `loop_name`, as an insert has them: the same for millions of reports.
        var columns: [UInt8]
        var version: String
        var host: String
        var name: String
    }

    var sources: [Int64: UniqueID] = [:]
    var runs: [Int64: UniqueID] = [:]
    var loops: [Int64: Loop] = [:]
    var labels: [Int64: String] = [:]
    var locations: [Int64: Int64] = [:]
    var stacks: [Int64: Int64] = [:]
    var evidence: [Int64: Int64] = [:]
    var signatures: [Int64: Int64] = [:]
}

/// Copies the tables that other tables refer to.
struct DimensionCopy {
    private let connection: Connection
    private let outbox: Outbox
    private(set) var keys = StoredKeys()

    init(_ connection: Connection, _ outbox: Outbox) {
        (self.connection, self.outbox) = (connection, outbox)
    }

    mutating func run(_ summary: inout StoreCopy.Summary) throws {
        try copyRuns(&summary)
        try copyImages(&summary)
        try copyLocations(&summary)
        try copyStacks(&summary)
        try copyGroups(&summary)
        try readOthers()
    }

    /// Sends a row for each row of a query.
    private func copy(
        _ query: String, to table: ClickHouseQuery, _ summary: inout StoreCopy.Summary,
        _ fill: (Statement, inout TabSeparatedWriter) throws -> Void
    ) throws {
        var sharded = ShardedRows(table, isEverywhere: true, outbox)
        let rows = try connection.prepare(query)
        while try rows.step() { try sharded.add { try fill(rows, &$0) } }
        try sharded.flush()
        summary.add(sharded)
    }

    private mutating func copyRuns(_ summary: inout StoreCopy.Summary) throws {
        var runs: [Int64: UniqueID] = [:]
        try copy(
            "select id, \(ProcessRun.columns) from process_run",
            to: "process_run (\(ProcessRun.clusterColumns))", &summary
        ) { row, out in
            let id = try row.integer()
            let run = try ProcessRun(row)
            runs[id] = run.id
            run.write(to: &out)
        }
        keys.runs = runs
        var loops: [Int64: StoredKeys.Loop] = [:]
        try copy(
            """
            select loop.id, name, threshold_ns, \(ProcessRun.columns)
            from loop join process_run on process_run.id = loop.run
            """, to: "loop (hash, run, name, threshold_ns)", &summary
        ) { row, out in
            let (id, name, threshold) = (try row.integer(), row.text(), try row.integer())
            let run = try ProcessRun(row)
            var hash = ContentHash()
            run.id.withBytes { hash.combine(bytes: $0) }
            hash.combine(name)
            hash.combine(UInt64(bitPattern: threshold))
            var columns = TabSeparatedWriter()
            columns.add(run.version)
            columns.add(run.buildID?.bytes ?? [])
            columns.add(run.host)
            columns.add(name)
            loops[id] = StoredKeys.Loop(
                hash: hash.value, app: run.app, columns: columns.bytes, version: run.version,
                host: run.host, name: name)
            out.add(hash.value)
            out.add(run.id)
            out.add(name)
            out.add(threshold)
        }
        keys.loops = loops
    }

    private func copyImages(_ summary: inout StoreCopy.Summary) throws {
        try copy(
            """
            select hash, path, image.build_id, process_run.uuid
            from image left join process_run on process_run.id = image.run
            """, to: "image (hash, path, build_id, run)", &summary
        ) { row, out in
            out.add(try row.integer())
            for _ in 1...3 { out.add(optionalContentOf: row, at: row.next()) }
        }
        try copy(
            """
            select process_run.uuid, image.hash, load_address, end_address from image_load
            join process_run on process_run.id = image_load.run join image on image.id = image_load.image
            """, to: "image_load (run, image, load_address, end_address)", &summary
        ) { row, out in
            out.add(row.blob())
            for _ in 1...3 { out.add(try row.integer()) }
        }
    }

    private mutating func copyLocations(_ summary: inout StoreCopy.Summary) throws {
        try copy(
            "select hash, name, raw_name, file from function",
            to: "`function` (hash, name, raw_name, file)", &summary
        ) { row, out in
            out.add(try row.integer())
            for _ in 1...3 { out.add(optionalContentOf: row, at: row.next()) }
        }
        let frames = try connection.prepare(
            """
            select ifnull(function.hash, 0), ifnull(line, -1), is_inlined from location_frame
            left join function on function.id = location_frame.function
            where location = ? order by position
            """)
        var locations: [Int64: Int64] = [:]
        // The source of a location's names; -1, the command `symbolicate`, is sixteen zeros.
        try copy(
            """
            select location.id, location.hash, image.hash, offset, kind, detail,
                case when namer = -1 then zeroblob(16) else source.store end
            from location join image on image.id = location.image
            left join source on source.id = location.namer
            """,
            to: """
                location (hash, image, offset, kind, detail, namer, frame_function, frame_line,
                    frame_is_inlined)
                """, &summary
        ) { row, out in
            let (id, hash) = (try row.integer(), try row.integer())
            locations[id] = hash
            out.add(hash)
            for _ in 1...4 { out.add(try row.integer()) }
            out.add(optionalContentOf: row, at: row.next())
            var columns = ([Int64](), [Int64](), [Int64]())
            try frames.bind(id)
            while try frames.step() {
                columns.0.append(try frames.integer())
                columns.1.append(try frames.integer())
                columns.2.append(try frames.integer())
            }
            out.add(list: columns.0)
            out.add(list: columns.1)
            out.add(list: columns.2)
        }
        keys.locations = locations
    }

    private mutating func copyStacks(_ summary: inout StoreCopy.Summary) throws {
        let locations = keys.locations
        var stacks: [Int64: Int64] = [:]
        var unused = Set(locations.keys)
        try copy(
            "select id, hash, is_truncated, locations from stack",
            to: "stack (hash, is_truncated, location, is_guessed)", &summary
        ) { row, out in
            let (id, hash, isTruncated) = try (row.integer(), row.integer(), row.integer())
            guard let entries = [StackEntry](encoded: row.blob()) else {
                throw row.damage("a stack is not a list of locations")
            }
            stacks[id] = hash
            out.add(hash)
            out.add(isTruncated)
            out.add(
                list: try entries.map { entry in
                    unused.remove(entry.location)
                    guard let hash = locations[entry.location] else {
                        throw row.damage("location \(entry.location) of a stack is missing")
                    }
                    return hash
                })
            out.add(list: entries.map { $0.isGuessed ? 1 : 0 })
        }
        keys.stacks = stacks
        summary.latePlaces = unused.compactMap { locations[$0] }
    }

    private mutating func copyGroups(_ summary: inout StoreCopy.Summary) throws {
        var signatures: [Int64: Int64] = [:]
        try copy(
            "select id, hash, family, title, is_cut, ifnull(wait, ''), has_app_frame from signature",
            to: "signature (key, hash, family, title, is_cut, wait, has_app_frame)", &summary
        ) { row, out in
            let (id, hash, family) = try (row.integer(), row.integer(), row.integer())
            let title = row.text()
            var key = ContentHash()
            key.combine(UInt64(bitPattern: hash))
            key.combine(title)
            signatures[id] = key.value
            out.add(key.value)
            out.add(hash)
            out.add(family)
            out.add(title)
            out.add(try row.integer())
            out.add(row.text())
            out.add(try row.integer())
        }
        keys.signatures = signatures
        try copy(
            "select signature, position, name from signature_frame",
            to: "signature_frame (signature, position, name)", &summary
        ) { row, out in
            out.add(signatures[try row.integer()] ?? 0)
            out.add(try row.integer())
            out.add(row.text())
        }
        var evidence: [Int64: Int64] = [:]
        let rows = try connection.prepare("select id, hash from evidence")
        while try rows.step() {
            let id = try rows.integer()
            evidence[id] = try rows.integer()
        }
        keys.evidence = evidence
        try copy(
            "select evidence, position, name, format, first_number from evidence_fact",
            to: "evidence_fact (evidence, position, name, format, first_number)", &summary
        ) { row, out in
            out.add(evidence[try row.integer()] ?? 0)
            out.add(try row.integer())
            out.add(row.text())
            out.add(row.text())
            out.add(try row.integer())
        }
    }

    /// The rows that are not a table there: sources come last, and labels are text.
    private mutating func readOthers() throws {
        let sources = try connection.prepare("select id, store from source")
        while try sources.step() {
            let id = try sources.integer()
            keys.sources[id] = try sources.uniqueID()
        }
        let labels = try connection.prepare("select id, value from label")
        while try labels.step() {
            let id = try labels.integer()
            keys.labels[id] = labels.text()
        }
    }
}

extension StoreCopy.Summary {
    mutating func add(_ rows: ShardedRows) { rowCount += rows.rowCount }
}

extension TabSeparatedWriter {
    /// The bytes of a text or a blob, or null.
    mutating func add(optionalContentOf row: Statement, at column: CInt) {
        if row.isNull(at: column) { null() } else { add(row.blob(at: column)) }
    }

    mutating func add(optional number: Int64?) {
        if let number { add(number) } else { null() }
    }

    mutating func add(optional content: [UInt8]?) {
        if let content { add(content) } else { null() }
    }
}
