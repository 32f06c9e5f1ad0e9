// What an incoming store holds, each row checked on its way in: a value out of range, or a name of
// something that is missing, refuses the whole file.

internal import StallModel

/// The rows of an incoming store, each checked on its way in.
struct IncomingRows {
    private let findState, findReports, findRun, findLoop: Statement
    private let findLabel, findImage, findLoads, findLocation, findNamed, findFrames: Statement
    private let findStackHash, findStack, findLosses: Statement

    init(_ connection: Connection) throws {
        findState = try connection.prepare("select state from report where source = ? and seq = ?")
        findReports = try connection.prepare(
            """
            select seq, revision, id, loop, mode, activity, phase, state, verdict, start_us,
                duration_ns, cpu_ns, detection_delay_ns, samples, cause, cause_confidence,
                cause_detail, threads, agent_ns, skipped_threads
            from report where source = ? and revision > ? order by seq
            """)
        findRun = try connection.prepare(
            "select \(ProcessRun.columns) from process_run where id = ?")
        findLoop = try connection.prepare("select run, name, threshold_ns from loop where id = ?")
        findLabel = try connection.prepare("select value from label where id = ?")
        findImage = try connection.prepare(
            "select hash, path, build_id, run from image where id = ?")
        findLoads = try connection.prepare(
            "select image, load_address, end_address from image_load where run = ?")
        findLocation = try connection.prepare(
            "select hash, image, offset, kind, detail from location where id = ?")
        findNamed = try connection.prepare(
            "select id, hash, detail from location where detail > 0 and revision > ?")
        findFrames = try connection.prepare(
            """
            select function.hash, function.name, function.raw_name, function.file,
                location_frame.function, location_frame.line, location_frame.is_inlined
            from location_frame left join function on function.id = location_frame.function
            where location_frame.location = ? order by location_frame.position
            """)
        findStack = try connection.prepare(
            "select locations, is_truncated from stack where id = ?")
        findStackHash = try connection.prepare("select hash from stack where id = ?")
        findLosses = try connection.prepare(
            "select run, reason, report_count from loss where source = ? and revision > ?")
    }

    func isHang(seq: Int64, ofSource source: Int64) throws -> Bool {
        try findState.integer(source, seq) == Int64(StallState.hang.rawValue)
    }

    /// Gives every report of the source that changed after `revision` to `body`, with this file's
    /// numbers, which `body` may replace.
    func forEachReport(
        ofSource source: Int64, after revision: Int64, _ body: (inout ReportRow) throws -> Void
    ) throws {
        let rows = findReports
        try rows.bind(source, revision)
        while try rows.step() {
            var report = try ReportRow(
                seq: rows.integer(at: 0), revision: rows.integer(at: 1),
                id: rows.uniqueID(at: 2), loop: rows.integer(at: 3), mode: rows.integer(at: 4),
                activity: rows.optionalInteger(at: 5), phase: rows.value(at: 6),
                state: rows.value(at: 7), verdict: rows.value(at: 8),
                start_us: rows.time_us(at: 9), duration_ns: rows.duration_ns(at: 10),
                cpu_ns: rows.duration_ns(at: 11), detectionDelay_ns: rows.duration_ns(at: 12),
                samples: rows.samples(at: 13), cause: rows.cause(at: 14),
                threads: rows.threads(at: 17), agent_ns: rows.duration_ns(at: 18),
                skippedThreads: rows.count(at: 19))
            try body(&report)
        }
    }

    func run(_ id: Int64) throws -> ProcessRun {
        try one(findRun, id, "process run") { try ProcessRun($0, at: 0) }
    }

    func loop(_ id: Int64) throws -> IncomingStore.Loop {
        try one(findLoop, id, "loop") { row in
            IncomingStore.Loop(
                run: row.integer(at: 0), name: row.text(at: 1),
                threshold_ns: try row.duration_ns(at: 2))
        }
    }

    func label(_ id: Int64) throws -> String { try one(findLabel, id, "label") { $0.text(at: 0) } }

    func image(_ id: Int64) throws -> IncomingStore.Image {
        try one(findImage, id, "image") { row in
            IncomingStore.Image(
                hash: row.integer(at: 0), path: row.optionalText(at: 1),
                buildID: row.optionalBytes(at: 2), run: row.optionalInteger(at: 3))
        }
    }

    /// Where the run's loader had put images.
    func loads(ofRun run: Int64) throws -> [(image: Int64, start: Int64, end: Int64)] {
        var loads: [(image: Int64, start: Int64, end: Int64)] = []
        try findLoads.bind(run)
        while try findLoads.step() {
            loads.append(
                (findLoads.integer(at: 0), findLoads.integer(at: 1), findLoads.integer(at: 2)))
        }
        return loads
    }

    func location(_ id: Int64) throws -> IncomingStore.Location {
        try one(findLocation, id, "place") { row in
            let kind: CodeAddressKind = try row.value(at: 3)
            return IncomingStore.Location(
                hash: row.integer(at: 0), image: row.integer(at: 1), offset: row.integer(at: 2),
                kind: Int64(kind.rawValue), detail: row.integer(at: 4))
        }
    }

    /// Gives every place whose names changed after `revision` to `body`.
    func forEachNamedLocation(
        after revision: Int64, _ body: (_ id: Int64, _ hash: Int64, _ detail: Int64) throws -> Void
    ) throws {
        try findNamed.bind(revision)
        while try findNamed.step() {
            try body(findNamed.integer(at: 0), findNamed.integer(at: 1), findNamed.integer(at: 2))
        }
    }

    func frames(ofLocation location: Int64) throws -> [FrameNames] {
        var frames: [FrameNames] = []
        let rows = findFrames
        try rows.bind(location)
        while try rows.step() {
            let names = FrameNames(
                name: rows.optionalText(at: 1), rawName: rows.optionalText(at: 2),
                file: rows.optionalText(at: 3), line: rows.optionalInteger(at: 5),
                isInlined: rows.integer(at: 6) != 0)
            let hash = ContentHash.function(
                name: names.name, rawName: names.rawName, file: names.file)
            guard rows.isNull(at: 4) || rows.optionalInteger(at: 0) == hash else {
                throw rows.damage("a function is not what it was when it was written")
            }
            frames.append(names)
        }
        return frames
    }

    /// What the file says that the stack's content hashes to.
    func stackHash(_ id: Int64) throws -> Int64 {
        try one(findStackHash, id, "stack") { $0.integer(at: 0) }
    }

    func stack(_ id: Int64) throws -> IncomingStore.Stack {
        try one(findStack, id, "stack") { row in
            guard let entries = [StackEntry](encoded: row.blob(at: 0)) else {
                throw row.damage("stack \(id) is not a list of places")
            }
            return IncomingStore.Stack(entries: entries, isTruncated: row.integer(at: 1) != 0)
        }
    }

    func losses(
        ofSource source: Int64, after revision: Int64
    ) throws -> [(run: Int64, reason: LossReason, count: Int64)] {
        var losses: [(run: Int64, reason: LossReason, count: Int64)] = []
        try findLosses.bind(source, revision)
        while try findLosses.step() {
            losses.append(
                (findLosses.integer(at: 0), try findLosses.value(at: 1), findLosses.integer(at: 2)))
        }
        return losses
    }

    /// The one row of this number, which another row refers to.
    private func one<Row>(
        _ statement: Statement, _ id: Int64, _ noun: String, _ read: (Statement) throws -> Row
    ) throws -> Row {
        try statement.bind(id)
        guard try statement.step() else {
            throw statement.damage("\(noun) \(id) is named and missing")
        }
        defer { statement.reset() }
        return try read(statement)
    }
}
