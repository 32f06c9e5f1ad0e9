// Gives content that many reports share one row: the same content has the same row, whatever brings it. The agent and
// ingest both write through this.

package import StallModel

/// A row that is known by its content.
package struct Interned: Equatable {
    package let id: Int64
    package let hash: Int64

    package init(
        id: Int64, hash: Int64
    ) {
        self.id = id
        self.hash = hash
    }
}

/// A frame's names, without the location that they belong to.
package struct FrameNames: Equatable {
    package var name: String?
    package var rawName: String?
    package var file: String?
    package var line: Int64?
    package var isInlined: Bool

    package init(
        name: String? = nil, rawName: String? = nil, file: String? = nil, line: Int64? = nil,
        isInlined: Bool
    ) {
        self.name = name
        self.rawName = rawName
        self.file = file
        self.line = line
        self.isInlined = isInlined
    }

    /// How much is known of a location that has these frames; the value of `location.detail`.
    package static func detail(_ frames: [FrameNames]) -> Int64 {
        if frames.contains(where: { $0.line != nil }) { return 3 }
        return frames.contains { $0.name != nil || $0.rawName != nil } ? 2 : 1
    }
}

extension FrameNames {
    /// The function, in the best form that is known.
    package var function: String? { name ?? rawName }

    /// Whether both name one function, in whatever form they have.
    func isSameFunction(as other: FrameNames) -> Bool {
        if let name, let others = other.name { return name == others }
        if let rawName, let others = other.rawName { return rawName == others }
        return name == other.name && rawName == other.rawName
    }

    /// Adds the file and line of the same function, where none are known.
    mutating func addLocation(of other: FrameNames) {
        guard line == nil, file == nil || file == other.file else { return }
        (file, line) = (other.file, other.line)
    }

    package init(_ frame: Frame) {
        self.init(
            name: frame.function?.clipped(toBytes: ValueLimits.functionBytes),
            rawName: frame.rawName?.clipped(toBytes: ValueLimits.functionBytes),
            file: frame.file?.clipped(toBytes: ValueLimits.pathBytes),
            line: frame.line.map(Int64.init), isInlined: frame.isInlined)
    }
}

/// Finds or adds the rows that reports refer to. Works within the transaction of its caller.
package final class Interner {
    private let connection: Connection
    private var labels: [String: Int64] = [:]
    private var runs: [RunFacts: Int64] = [:]
    /// The runs whose identifier another source gives to another process, by the numbers of their own rows.
    private var namesakes: [Int64: Int64] = [:]

    private struct RunFacts: Hashable {
        var id: UniqueID
        var app, version, host: String

        init(_ run: ProcessRun) {
            (id, app, version, host) = (run.id, run.app, run.version, run.host)
        }
    }
    private var images: [Int64: Int64] = [:]
    private var locations: [Int64: (id: Int64, detail: Int64)] = [:]
    private var functions: [Int64: Int64] = [:]
    /// Hashes of the names of the functions that contain the locations.
    private var outermost: [Int64: Int] = [:]
    /// The hashes of these functions with their files; nil where none is known.
    private var outermostRows: [Int64: Int64?] = [:]
    private var stacks: [Int64: Int64] = [:]

    package init(_ connection: Connection) throws {
        self.connection = connection
        findLabel = try connection.prepare("select id from label where value = ?")
        addLabel = try connection.prepare("insert into label (value, checksum) values (?, ?)")
        findRun = try connection.prepare(
            "select id, app, version, host from process_run where uuid = ?")
        addRun = try connection.prepare(
            """
            insert into process_run (uuid, app, version, build_id, host, pid, boot_id, start_ticks,
                started_us, os, device, checksum)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        findLoop = try connection.prepare(
            "select id from loop where run = ? and name = ? and threshold_ns = ?")
        addLoop = try connection.prepare(
            "insert into loop (run, name, threshold_ns, checksum) values (?, ?, ?, ?)")
        findImage = try connection.prepare("select id from image where hash = ?")
        addImage = try connection.prepare(
            "insert into image (hash, path, build_id, run) values (?, ?, ?, ?)")
        locationImage = try connection.prepare(
            """
            insert into image_load (run, image, load_address, end_address) values (?, ?, ?, ?)
            on conflict do update
            set load_address = excluded.load_address, end_address = excluded.end_address
            where (load_address, end_address)
                is not (excluded.load_address, excluded.end_address)
            """)
        findLocation = try connection.prepare("select id, detail from location where hash = ?")
        addLocation = try connection.prepare(
            "insert into location (hash, image, offset, kind) values (?, ?, ?, ?)")
        findFunction = try connection.prepare("select id from function where hash = ?")
        addFunction = try connection.prepare(
            "insert into function (hash, name, raw_name, file) values (?, ?, ?, ?)")
        findNames = try connection.prepare(
            """
            select function.name, function.raw_name, function.file, location_frame.line,
                location_frame.is_inlined
            from location_frame left join function on function.id = location_frame.function
            where location_frame.location = ? order by location_frame.position
            """)
        removeFrames = try connection.prepare("delete from location_frame where location = ?")
        addFrame = try connection.prepare(
            """
            insert into location_frame (location, position, function, line, is_inlined)
            values (?, ?, ?, ?, ?)
            """)
        setDetail = try connection.prepare(
            "update location set detail = ?, revision = ?, namer = ? where id = ?")
        findNamer = try connection.prepare(
            "select namer from location where id = ? and namer is not null")
        addConflict = try connection.prepare(
            "insert or ignore into name_conflict (location, source) values (?, ?)")
        findStack = try connection.prepare("select id from stack where hash = ?")
        addStack = try connection.prepare(
            "insert into stack (hash, is_truncated, locations) values (?, ?, ?)")
    }

    private let findLabel, addLabel, findRun, addRun, findLoop, addLoop, findImage,
        addImage: Statement
    private let locationImage, findLocation, addLocation, findFunction, addFunction: Statement
    private let findNames, removeFrames, addFrame, setDetail, findStack, addStack: Statement
    private let findNamer, addConflict: Statement
    /// Prepared by ingest only.
    private var findOutermost: Statement?

    /// Forgets every row: after a rollback, and when another process may have written or evicted.
    package func forget() {
        labels.removeAll(keepingCapacity: true)
        runs.removeAll(keepingCapacity: true)
        namesakes.removeAll(keepingCapacity: true)
        images.removeAll(keepingCapacity: true)
        locations.removeAll(keepingCapacity: true)
        outermost.removeAll(keepingCapacity: true)
        outermostRows.removeAll(keepingCapacity: true)
        functions.removeAll(keepingCapacity: true)
        stacks.removeAll(keepingCapacity: true)
    }

    /// Forgets rows where very many are known: a source must not fill the memory, and all can be found again.
    package func trim() {
        if labels.count > 10_000 { labels.removeAll() }
        if runs.count + images.count > 200_000 { (runs, images, namesakes) = ([:], [:], [:]) }
        if locations.count + outermost.count + outermostRows.count > 1_000_000 {
            (locations, outermost, outermostRows) = ([:], [:], [:])
        }
        if functions.count + stacks.count > 1_000_000 { (functions, stacks) = ([:], [:]) }
    }

    package func label(_ value: String) throws -> Int64 {
        if let id = labels[value] { return id }
        let id = try findLabel.found(value) ?? addLabel.insert(value, RowChecksum.of(value))
        labels[value] = id
        return id
    }

    /// The row of a run. A source's description of it binds only that source: a run of the same identifier that is of
    /// another app, version or host gets a row of its own.
    package func run(_ run: ProcessRun) throws -> Int64 {
        let facts = RunFacts(run)
        if let id = runs[facts] { return id }
        var own = run
        let first = try row(of: run)
        var found = first
        if let first, !first.isSame {
            own.id = run.namesake
            found = try row(of: own)
        }
        let id = try found?.id ?? add(own)
        if let first, first.id != id { namesakes[id] = first.id }
        runs[facts] = id
        return id
    }

    /// The row of a run as it is stored now; nil when there is none.
    package func knownRun(_ run: ProcessRun) throws -> Int64? {
        var own = run
        guard let first = try row(of: run) else { return nil }
        if first.isSame { return first.id }
        own.id = run.namesake
        return try row(of: own)?.id
    }

    private func row(of run: ProcessRun) throws -> (id: Int64, isSame: Bool)? {
        try findRun.bind(run.id)
        guard try findRun.step() else { return nil }
        defer { findRun.reset() }
        let isSame =
            findRun.text(at: 1) == run.app && findRun.text(at: 2) == run.version
            && findRun.text(at: 3) == run.host
        return (try findRun.integer(at: 0), isSame)
    }

    private func add(_ run: ProcessRun) throws -> Int64 {
        try addRun.insert(
            run.id, run.app, run.version, run.buildID?.bytes, run.host, Int64(run.pid),
            run.bootID, Int64(bitPattern: run.startTicks), run.started.microseconds,
            run.os, run.device, RowChecksum.of(run))
    }

    package func loop(run: Int64, name: String, threshold_ns: Int64) throws -> Int64 {
        try findLoop.found(run, name, threshold_ns)
            ?? addLoop.insert(run, name, threshold_ns, RowChecksum.of(run, name, threshold_ns))
    }

    /// - Parameter owner: The run that the image belongs to; nil for one with a build ID.
    package func image(
        path: String?, buildID: [UInt8]?, owner: (id: Int64, uuid: UniqueID)?
    ) throws -> Interned {
        let hash = ContentHash.image(path: path, buildID: buildID, run: owner?.uuid)
        if let id = images[hash] { return Interned(id: id, hash: hash) }
        // Its hash has the identifier that the source gives the run.
        let run = owner.map { namesakes[$0.id] ?? $0.id }
        let id = try findImage.found(hash) ?? addImage.insert(hash, path, buildID, run)
        images[hash] = id
        return Interned(id: id, hash: hash)
    }

    /// Notes where a run's loader has put an image.
    package func place(
        image: Int64, run: Int64, loadAddress: Int64, endAddress: Int64
    ) throws {
        try locationImage.run(run, image, loadAddress, endAddress)
    }

    package func location(
        image: Interned, offset: Int64, kind: Int64
    ) throws -> Interned {
        let hash = ContentHash.location(image: image.hash, offset: offset, kind: kind)
        if let known = try knownLocation(hash: hash) { return Interned(id: known.id, hash: hash) }
        let id = try addLocation.insert(hash, image.id, offset, kind)
        locations[hash] = (id, detail: 0)
        return Interned(id: id, hash: hash)
    }

    /// The location of this hash and what is known of it; nil when the store has no such location.
    package func knownLocation(hash: Int64) throws -> (id: Int64, detail: Int64)? {
        if let known = locations[hash] { return known }
        try findLocation.bind(hash)
        guard try findLocation.step() else { return nil }
        let known = (try findLocation.integer(), detail: try findLocation.integer())
        findLocation.reset()
        locations[hash] = known
        return known
    }

    /// The value of `location.namer` where `symbolicate` named a location, from the binary itself.
    package static let symbolicated: Int64 = -1

    /// Attaches the names that a source gives a location, as far as they add to what is known and do not contradict it.
    /// Once known, functions are changed only by the same source or by `symbolicate`; any other may add a file and a
    /// line where its function is the same. A source with different names is noted.
    ///
    /// - Returns: Whether other functions run there now than before.
    package func take(
        _ frames: [FrameNames], ofLocation location: Interned, knownDetail: Int64,
        from source: Int64
    ) throws -> Bool {
        let namer = try knownDetail > 1 ? findNamer.found(location.id) : source
        if namer == source {
            return try name(location: location, frames, revision: 0, namer: source)
        }
        let known = try names(ofLocation: location)
        guard let (ours, theirs) = known.last.flatMap({ last in frames.last.map { (last, $0) } }),
            ours.isSameFunction(as: theirs)
        else {
            try addConflict.run(location.id, source)
            return false
        }
        // Older stores do not record whose names they have.
        if namer == nil {
            return try name(location: location, frames, revision: 0, namer: source)
        }
        var merged = known
        if known.count == frames.count, zip(known, frames).allSatisfy({ $0.isSameFunction(as: $1) })
        {
            for index in merged.indices { merged[index].addLocation(of: frames[index]) }
        } else {
            merged[merged.count - 1].addLocation(of: theirs)
        }
        if merged != known { try name(location: location, merged, revision: 0, namer: namer) }
        return false
    }

    /// Whether the function that contains the location, behind the inlined ones, is the one of this hash.
    package func isNamed(_ location: Interned, byFunction hash: Int64?) throws -> Bool {
        guard let hash else { return false }
        if let known = outermostRows[location.hash] { return known == hash }
        let find =
            try findOutermost
            ?? connection.prepare(
                """
                select function.hash
                from location_frame left join function on function.id = location_frame.function
                where location_frame.location = ? order by location_frame.position desc limit 1
                """)
        findOutermost = find
        let known = try find.first(location.id).value
        outermostRows[location.hash] = .some(known)
        return known == hash
    }

    /// Notes a source that names a location in as much detail as is known, and differently.
    package func compare(
        _ frames: [FrameNames], withThoseOf location: Interned,
        from source: @autoclosure () throws -> Int64
    ) throws {
        guard let theirs = frames.last?.function else { return }
        if outermost[location.hash] == theirs.hashValue { return }
        guard let ours = try names(ofLocation: location).last, let last = frames.last else {
            return
        }
        outermost[location.hash] = ours.function?.hashValue
        if ours.isSameFunction(as: last) { return }
        let source = try source()
        guard try findNamer.found(location.id) != source else { return }
        try addConflict.run(location.id, source)
    }

    /// Whether the location has any names, complete or not.
    package func hasNames(ofLocation location: Interned) throws -> Bool {
        try findNames.bind(location.id)
        defer { findNames.reset() }
        return try findNames.step()
    }

    private func names(ofLocation location: Interned) throws -> [FrameNames] {
        var names: [FrameNames] = []
        try findNames.bind(location.id)
        while try findNames.step() {
            names.append(
                FrameNames(
                    name: findNames.optionalText(), rawName: findNames.optionalText(),
                    file: findNames.optionalText(), line: findNames.optionalInteger(),
                    isInlined: try findNames.integer() != 0))
        }
        return names
    }

    /// Replaces the names of a location.
    ///
    /// - Parameters:
    ///   - namer: The source of the names, in a central store.
    ///   - isFinal: Otherwise the location counts as not looked up: it may have other names.
    /// - Returns: Whether other functions run there now than before; lines and files do not count.
    @discardableResult
    package func name(
        location: Interned, _ frames: [FrameNames], revision: Int64, namer: Int64? = nil,
        isFinal: Bool = true
    ) throws -> Bool {
        var before: [[String?]] = []
        try findNames.bind(location.id)
        while try findNames.step() {
            before.append([findNames.optionalText(), findNames.optionalText()])
            findNames.skipRest()
        }
        try removeFrames.run(location.id)
        for (position, frame) in frames.enumerated() {
            try addFrame.run(
                location.id, Int64(position), function(frame), frame.line, frame.isInlined)
        }
        let detail = isFinal ? FrameNames.detail(frames) : 0
        try setDetail.run(detail, revision, namer, location.id)
        locations[location.hash] = (location.id, detail)
        outermost[location.hash] = nil
        outermostRows[location.hash] = nil
        return before != frames.map { [$0.name, $0.rawName] }
    }

    private func function(_ names: FrameNames) throws -> Int64? {
        if names.name == nil && names.rawName == nil && names.file == nil { return nil }
        let hash = ContentHash.function(name: names.name, rawName: names.rawName, file: names.file)
        if let id = functions[hash] { return id }
        let id =
            try findFunction.found(hash)
            ?? addFunction.insert(hash, names.name, names.rawName, names.file)
        functions[hash] = id
        return id
    }

    /// The stack of this hash, when the store has it: then its locations need not be read.
    package func knownStack(hash: Int64) throws -> Int64? {
        if let id = stacks[hash] { return id }
        guard let id = try findStack.found(hash) else { return nil }
        stacks[hash] = id
        return id
    }

    package func addStack(
        hash: Int64, _ entries: [StackEntry], isTruncated: Bool
    ) throws -> Int64 {
        let id = try addStack.insert(hash, isTruncated, entries.encoded)
        stacks[hash] = id
        return id
    }
}
