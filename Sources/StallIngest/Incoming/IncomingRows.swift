// The rows of an incoming store, each checked when it is read: a value out of range, or a name of something that is
// missing, refuses the whole file.

internal import StallArchive
internal import StallModel
internal import StallStore

/// The rows of an incoming store, each checked when it is read.
final class IncomingRows {
    private let findState, findRun, findLoop: Statement
    private let findLabel, findImage, findLoads, findLocation, findNamed, findFrames: Statement
    private let findStackHash, findStack, findLosses, findNamer: Statement

    init(_ connection: Connection) throws {
        findState = try connection.prepare(
            "select state from report where source = ? and seq = ? and id = ?")
        findRun = try connection.prepare(
            "select \(ProcessRun.columns), checksum from process_run where id = ?")
        findLoop = try connection.prepare(
            "select run, name, threshold_ns, checksum from loop where id = ?")
        findLabel = try connection.prepare("select value, checksum from label where id = ?")
        findImage = try connection.prepare(
            "select hash, path, build_id, run from image where id = ?")
        findLoads = try connection.prepare(
            "select image, load_address, end_address from image_load where run = ?")
        findLocation = try connection.prepare(
            "select kind, hash, image, offset, detail from location where id = ?")
        findNamed = try connection.prepare(
            """
            select id, hash, detail, (
                select function.hash
                from location_frame left join function on function.id = location_frame.function
                where location_frame.location = location.id
                order by location_frame.position desc limit 1)
            from location where id > ? and revision > ? and (
                detail > 0 or exists (select 1 from location_frame where location = location.id))
            order by id
            """)
        findFrames = try connection.prepare(
            """
            select function.hash, function.name, function.raw_name, function.file,
                location_frame.line, location_frame.is_inlined, location_frame.function
            from location_frame left join function on function.id = location_frame.function
            where location_frame.location = ? order by location_frame.position
            """)
        findNamer = try connection.prepare(
            "select namer from location where id = ? and namer is not null")
        findStack = try connection.prepare(
            "select locations, is_truncated from stack where id = ?")
        findStackHash = try connection.prepare("select hash from stack where id = ?")
        findLosses = try connection.prepare(
            "select run, reason, report_count, revision from loss where source = ? and revision > ?"
        )
    }

    /// The state of a report; nil where the source does not have it.
    func state(of report: OpenReport, ofSource source: Int64) throws -> StallState? {
        try findState.bind(source, report.seq, report.id)
        defer { findState.reset() }
        return try findState.step() ? try findState.value() : nil
    }

    /// The source whose names the location has, where that is known.
    func namer(ofLocation location: Int64) throws -> Int64? { try findNamer.found(location) }

    /// The content hashes of the reports' stacks as the file claims them, by the stacks' numbers.
    func stackHashes(of reports: [ReportRow]) throws -> [Int64: Int64] {
        var hashes: [Int64: Int64] = [:]
        func note(_ stack: Int64?) throws {
            guard let stack, hashes[stack] == nil else { return }
            hashes[stack] = try stackHash(stack)
        }
        for report in reports {
            for sample in report.samples { try note(sample.stack) }
            for thread in report.threads { try note(thread.stack) }
        }
        return hashes
    }

    func run(_ id: Int64) throws -> ProcessRun {
        try one(findRun, id, "process run") { row in
            for (column, noun) in [
                (1, "an app's name"), (2, "a version"), (4, "a host's name"), (6, "a boot's id"),
            ] {
                _ = try row.limitedText(at: CInt(column), ValueLimits.nameBytes, noun)
            }
            for (column, noun) in [(9, "a system's name"), (10, "a device's name")]
            where !row.isNull(at: CInt(column)) {
                _ = try row.limitedText(at: CInt(column), ValueLimits.nameBytes, noun)
            }
            guard row.blob(at: 3).count <= ValueLimits.buildIDBytes else {
                throw row.damage("a build ID of \(row.blob(at: 3).count) bytes")
            }
            _ = try row.limited(at: 5, 0...Int64(Int32.max), "process id")
            _ = try row.limited(at: 8, 0...ValueLimits.time_us, "time in microseconds")
            try row.expectChecksum(
                at: ProcessRun.columnCount, of: ProcessRun.checked, later: ProcessRun.later,
                "process run \(id)")
            return try ProcessRun(row)
        }
    }

    func loop(_ id: Int64) throws -> IncomingStore.Loop {
        try one(findLoop, id, "loop") { row in
            try row.expectChecksum(at: 3, of: 0..<3, "loop \(id)")
            return IncomingStore.Loop(
                run: try row.integer(),
                name: try row.limitedText(ValueLimits.nameBytes, "a loop's name"),
                threshold_ns: try row.limited_ns())
        }
    }

    func label(_ id: Int64) throws -> String {
        try one(findLabel, id, "label") { row in
            try row.expectChecksum(at: 1, of: 0..<1, "label \(id)")
            return try row.limitedText(ValueLimits.labelBytes, "a mode or activity")
        }
    }

    func image(_ id: Int64) throws -> IncomingStore.Image {
        try one(findImage, id, "image") { row in
            let hash = try row.integer()
            let path = try row.limitedOptionalText(ValueLimits.pathBytes, "an image's path")
            let buildID = row.next()
            guard row.blob(at: buildID).count <= ValueLimits.buildIDBytes else {
                throw row.damage("a build ID of \(row.blob(at: buildID).count) bytes")
            }
            return IncomingStore.Image(
                hash: hash, path: path, buildID: row.optionalBytes(at: buildID),
                run: row.optionalInteger())
        }
    }

    /// Where the run's loader had put images.
    func loads(ofRun run: Int64) throws -> [(image: Int64, start: Int64, end: Int64)] {
        var loads: [(image: Int64, start: Int64, end: Int64)] = []
        try findLoads.bind(run)
        while try findLoads.step() {
            guard loads.count < ValueLimits.loadsOfRun else {
                throw findLoads.damage("run \(run) has loaded more than \(loads.count) images")
            }
            loads.append(
                (
                    try findLoads.integer(), try findLoads.integer(),
                    try findLoads.integer()
                ))
        }
        return loads
    }

    func location(_ id: Int64) throws -> IncomingStore.Location {
        try one(findLocation, id, "location") { row in
            let kind: CodeAddressKind = try row.value()
            return IncomingStore.Location(
                hash: try row.integer(), image: try row.integer(), offset: try row.integer(),
                kind: Int64(kind.rawValue), detail: try row.integer())
        }
    }

    /// A location with names, by its number, its hash and what is known of it, and the hash that the file claims for
    /// the function that contains it, behind the inlined ones.
    typealias NamedLocation = (id: Int64, hash: Int64, detail: Int64, function: Int64?)

    /// The first locations whose names changed after `revision`, behind the one of number `last`.
    ///
    /// - Returns: At most `namedLimit` of them.
    func namedLocations(after revision: Int64, behind last: Int64) throws -> [NamedLocation] {
        try findNamed.bind(last, revision)
        defer { findNamed.reset() }
        var places: [NamedLocation] = []
        while places.count < Self.namedLimit, try findNamed.step() {
            places.append(
                (
                    try findNamed.integer(), try findNamed.integer(),
                    try findNamed.integer(), findNamed.optionalInteger()
                ))
        }
        return places
    }

    static let namedLimit = 10_000

    func frames(ofLocation location: Int64) throws -> [FrameNames] {
        var frames: [FrameNames] = []
        let rows = findFrames
        try rows.bind(location)
        while try rows.step() {
            guard frames.count < ValueLimits.frameCount else {
                throw rows.damage("location \(location) has more than \(frames.count) functions")
            }
            let claimed = rows.optionalInteger()
            let names = FrameNames(
                name: try rows.limitedOptionalText(ValueLimits.functionBytes, "a function's name"),
                rawName: try rows.limitedOptionalText(
                    ValueLimits.functionBytes, "a function's name"),
                file: try rows.limitedOptionalText(ValueLimits.pathBytes, "a file's path"),
                line: rows.optionalInteger(), isInlined: try rows.integer() != 0)
            if let line = names.line { try rows.expect(line, in: 0...Int64(Int32.max), "line") }
            let hasFunction = rows.optionalInteger() != nil
            let hash = ContentHash.function(
                name: names.name, rawName: names.rawName, file: names.file)
            guard !hasFunction || claimed == hash else {
                throw rows.damage("a function was changed after it was written (checksum mismatch)")
            }
            frames.append(names)
        }
        return frames
    }

    /// The content hash that the file claims for the stack.
    func stackHash(_ id: Int64) throws -> Int64 {
        try one(findStackHash, id, "stack") { try $0.integer() }
    }

    func stack(_ id: Int64) throws -> IncomingStore.Stack {
        try one(findStack, id, "stack") { row in
            let bytes = row.blob()
            guard bytes.count <= ValueLimits.stackBytes else {
                throw row.damage("stack \(id) takes \(bytes.count) bytes")
            }
            guard let entries = [StackEntry](encoded: bytes) else {
                throw row.damage("stack \(id) is not a list of locations")
            }
            return IncomingStore.Stack(entries: entries, isTruncated: try row.integer() != 0)
        }
    }

    func losses(
        ofSource source: Int64, after revision: Int64
    ) throws -> [(run: Int64, reason: LossReason, count: Int64, revision: Int64)] {
        var losses: [(run: Int64, reason: LossReason, count: Int64, revision: Int64)] = []
        try findLosses.bind(source, revision)
        while try findLosses.step() {
            guard losses.count < ValueLimits.lossesOfSource else {
                throw findLosses.damage("more than \(losses.count) rows of losses")
            }
            losses.append(
                (
                    try findLosses.integer(), try findLosses.value(),
                    try findLosses.limited(0...ValueLimits.count, "count"),
                    try findLosses.limited(0...ValueLimits.revision, "revision")
                ))
        }
        return losses
    }

    /// The one row of this number, which another row refers to.
    private func one<Row>(
        _ statement: Statement, _ id: Int64, _ noun: String, _ read: (Statement) throws -> Row
    ) throws -> Row {
        try statement.bind(id)
        guard try statement.step() else {
            throw statement.damage("\(noun) \(id) is referred to and missing")
        }
        defer { statement.reset() }
        return try read(statement)
    }
}
