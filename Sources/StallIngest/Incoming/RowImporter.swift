// Copies one store's rows, and maps the numbers that mean something in the incoming file only.

internal import StallModel
internal import StallStore

/// The way of an incoming store's rows into the central one.
final class RowImporter {
    let incoming: IncomingStore
    private let interner: Interner
    private let reports: ReportRows
    private let grouping: Grouping
    private let same: SameReports
    private let evidence: EvidenceWriter
    private let here: ProcessLife
    // From the incoming store's numbers to central ones.
    private var runs: [Int64: (id: Int64, uuid: UniqueID)] = [:]
    private var loops: [Int64: Int64] = [:]
    private var labels: [Int64: Int64] = [:]
    private var images: [Int64: Interned] = [:]
    private var locations: [Int64: Interned] = [:]
    private var stacks: [Int64: Int64] = [:]
    /// The central number of the source that is imported, and the one whose names locations get.
    private var target: Int64 = 0
    private var namer: Int64?
    /// The highest number of a report that the source had.
    private var lastKnown: Int64 = 0
    /// The central number of each source.
    var targets: [Int64: Int64] = [:]
    /// The source that was one with the present one and has a report already.
    var sibling: ((_ seq: Int64, _ id: UniqueID) throws -> Int64?)?
    /// Also imports the names of locations that no report here shows: those that do are elsewhere.
    var takesAllNames = false
    /// The content hashes that the file claims for stacks, as far as they were read ahead.
    var stackHashes: [Int64: Int64] = [:]

    init(
        _ incoming: IncomingStore, interner: Interner, reports: ReportRows, grouping: Grouping,
        same: SameReports, evidence: EvidenceWriter, here: ProcessLife
    ) {
        self.here = here
        self.same = same
        self.evidence = evidence
        self.incoming = incoming
        self.interner = interner
        self.reports = reports
        self.grouping = grouping
    }

    /// Forgets the central store's numbers: some of these rows may be gone.
    func forget() {
        (runs, loops, labels, images) = ([:], [:], [:], [:])
        (locations, stacks) = ([:], [:])
    }

    /// Continues with the next source.
    ///
    /// - Parameter target: Its number in the central store.
    func begin(target: Int64) throws {
        self.target = target
        lastKnown = try reports.lastNumber(ofSource: target) ?? 0
        namer = incoming.role == .agent ? target : nil
    }

    /// Takes the reports among these that are not covered by the position.
    func importReports(
        _ rows: inout [ReportRow], of source: IncomingStore.Source,
        behind position: SourcePosition
    ) throws -> (added: Int, changed: Int) {
        var (added, changed) = (0, 0)
        for index in rows.indices {
            if position.covers(seq: rows[index].seq, revision: rows[index].revision) { continue }
            let other = try sibling?(rows[index].seq, rows[index].id)
            try end(&rows[index], ifEndedIn: other ?? target)
            let row = rows[index]
            if let other, try !same.makeRoom(for: row, in: other) { continue }
            // Of a source of lines nothing says how far it was taken.
            if source.hasLines, try reports.isKnown(row, source: target) { continue }
            if row.seq <= lastKnown, try same.isSurpassed(row, in: target) { continue }
            switch try take(&rows[index], source: target) {
            case .added: added += 1
            case .changed: changed += 1
            case nil: break
            }
        }
        if incoming.isLarge { try grouping.flushMany() }
        trim()
        return (added, changed)
    }

    /// Ends an open stall of a process that is gone where a copy's record of it has an end already: in any order of import
    /// the same two ends are compared.
    private func end(_ row: inout ReportRow, ifEndedIn source: Int64) throws {
        guard row.state == .open, incoming.role == .agent,
            let known = try reports.progress(source: source, seq: row.seq),
            known.id == row.id, !known.isOpen
        else { return }
        try end(&row, ofRun: incoming.run(ofLoop: row.loop))
    }

    private func end(_ row: inout ReportRow, ofRun run: ProcessRun) throws {
        guard let end = OpenReport(row, of: run).end(in: incoming.path, here) else { return }
        row.end(as: end)
    }

    /// Forgets numbers where very many are known; they are found again.
    private func trim() {
        interner.trim()
        if runs.count + loops.count + labels.count + images.count > 200_000 {
            (runs, loops, labels, images) = ([:], [:], [:], [:])
        }
        if locations.count + stacks.count > 500_000 { (locations, stacks) = ([:], [:]) }
    }

    /// - Returns: Nil for a report that is here already under another source.
    private func take(_ row: inout ReportRow, source: Int64) throws -> ReportRows.Outcome? {
        let run = row.state == .open ? try incoming.run(ofLoop: row.loop) : nil
        row.loop = try loop(row.loop)
        row.mode = try label(row.mode)
        row.activity = try row.activity.map(label)
        for index in row.samples.indices {
            row.samples[index].stack = try row.samples[index].stack.map(stack)
        }
        for index in row.threads.indices {
            row.threads[index].stack = try row.threads[index].stack.map(stack)
        }
        row.evidence = try evidence.share(row.cause)
        if let run, incoming.role == .agent, try same.isClosedElsewhere(row, source: source) {
            try end(&row, ofRun: run)
        }
        if try same.holds(row, source: source) { return nil }
        try grouping.decide(&row, source: source)
        guard let outcome = try reports.put(row, source: source) else {
            throw StoreError.sharedIdentity(path: incoming.path)
        }
        try grouping.count(row, source: source, after: outcome)
        try same.note(row, source: source)
        return outcome
    }

    /// Imports the names of locations that are used here too, where they are more detailed than the known ones.
    ///
    /// - Parameter source: The owner of the names; nil looks it up for each location.
    func importNames(after revision: Int64, of source: Int64?) throws {
        namer = source.flatMap { targets[$0] }
        var places = try incoming.firstNamed(after: revision)
        while true {
            for place in places {
                if takesAllNames { _ = try self.location(place.id) }
                try importNames(
                    ofLocation: place.id, hash: place.hash, detail: place.detail, isNew: false,
                    function: place.function)
            }
            trim()
            guard places.count == IncomingRows.namedLimit, let last = places.last else { return }
            places = try incoming.rows().namedLocations(after: revision, behind: last.id)
        }
    }

    /// - Parameters:
    ///   - isNew: No report of the central store shows the location yet.
    ///   - function: The hash that the file claims for the function that contains the location.
    private func importNames(
        ofLocation location: Int64, hash: Int64, detail: Int64, isNew: Bool, function: Int64? = nil
    ) throws {
        guard let known = try interner.knownLocation(hash: hash) else { return }
        guard known.detail > 0 || detail > 0 else {
            return try importUnfinishedNames(
                ofLocation: location, Interned(id: known.id, hash: hash), isNew: isNew)
        }
        guard known.detail < detail else {
            // Each location is compared once, behind the reports that show it. As with stacks, the content of a
            // function that is here under its hash is not read.
            let place = Interned(id: known.id, hash: hash)
            if !isNew, detail > 1, try !interner.isNamed(place, byFunction: function) {
                try interner.compare(
                    incoming.rows().frames(ofLocation: location),
                    withThoseOf: place, from: namer(ofLocation: location))
            }
            return
        }
        let hasChanged = try interner.take(
            incoming.rows().frames(ofLocation: location),
            ofLocation: Interned(id: known.id, hash: hash), knownDetail: known.detail,
            from: namer(ofLocation: location))
        guard hasChanged, !isNew else { return }
        grouping.noteNames(ofLocation: known.id, wasLookedUp: known.detail > 0)
    }

    /// Imports names that are not complete yet where there are none: better than an address, and the location still
    /// counts as not looked up.
    private func importUnfinishedNames(
        ofLocation location: Int64, _ place: Interned, isNew: Bool
    ) throws {
        guard try !interner.hasNames(ofLocation: place) else { return }
        let frames = try incoming.rows().frames(ofLocation: location)
        guard !frames.isEmpty else { return }
        try interner.name(
            location: place, frames, revision: 0, namer: namer(ofLocation: location),
            isFinal: false)
        if !isNew { grouping.noteNames(ofLocation: place.id, wasLookedUp: false) }
    }

    /// The source whose names a location has: in an agent's store its own.
    private func namer(ofLocation location: Int64) throws -> Int64 {
        if let namer { return namer }
        let named = try incoming.rows().namer(ofLocation: location)
        return named.flatMap { targets[$0] } ?? target
    }

    /// The central number of a process run.
    func run(_ id: Int64) throws -> Int64 { try knownRun(id).id }

    private func knownRun(_ id: Int64) throws -> (id: Int64, uuid: UniqueID) {
        if let run = runs[id] { return run }
        let run = try incoming.rows().run(id)
        let known = (id: try interner.run(run), uuid: run.id)
        runs[id] = known
        for load in try incoming.rows().loads(ofRun: id) {
            try interner.place(
                image: image(load.image).id, run: known.id, loadAddress: load.start,
                endAddress: load.end)
        }
        return known
    }

    /// The central number of a loop.
    func loop(_ id: Int64) throws -> Int64 {
        if let loop = loops[id] { return loop }
        let loop = try incoming.rows().loop(id)
        let known = try interner.loop(
            run: run(loop.run), name: loop.name, threshold_ns: loop.threshold_ns)
        loops[id] = known
        return known
    }

    private func label(_ id: Int64) throws -> Int64 {
        if let label = labels[id] { return label }
        let known = try interner.label(incoming.rows().label(id))
        labels[id] = known
        return known
    }

    private func image(_ id: Int64) throws -> Interned {
        if let image = images[id] { return image }
        let image = try incoming.rows().image(id)
        guard (image.buildID == nil) == (image.run != nil) else {
            throw incoming.damage("image \(id) is in no run")
        }
        let owner = try image.run.map(knownRun)
        let known = try interner.image(path: image.path, buildID: image.buildID, owner: owner)
        try check(known.hash == image.hash, "image", id)
        images[id] = known
        return known
    }

    private func location(_ id: Int64) throws -> Interned {
        if let location = locations[id] { return location }
        let location = try incoming.rows().location(id)
        let isNew = try interner.knownLocation(hash: location.hash) == nil
        let known = try interner.location(
            image: image(location.image), offset: location.offset, kind: location.kind)
        try check(known.hash == location.hash, "location", id)
        // Names first: the group of a report that comes with its names is decided once.
        try importNames(
            ofLocation: id, hash: known.hash, detail: location.detail, isNew: isNew)
        locations[id] = known
        return known
    }

    private func stack(_ id: Int64) throws -> Int64 {
        if let stack = stacks[id] { return stack }
        // The content that this store holds under the hash was checked when it came: the incoming content is not read.
        let claimed = try stackHashes[id] ?? incoming.rows().stackHash(id)
        if let known = try interner.knownStack(hash: claimed) {
            stacks[id] = known
            return known
        }
        let stack = try incoming.rows().stack(id)
        let places = try stack.entries.map { try location($0.location) }
        let hash = ContentHash.stack(
            zip(places, stack.entries).map { ($0.hash, $1.isGuessed) },
            isTruncated: stack.isTruncated)
        try check(hash == claimed, "stack", id)
        let entries = zip(places, stack.entries).map {
            StackEntry(location: $0.id, isGuessed: $1.isGuessed)
        }
        let known = try interner.addStack(hash: hash, entries, isTruncated: stack.isTruncated)
        stacks[id] = known
        return known
    }

    private func check(_ isAsWritten: Bool, _ noun: String, _ id: Int64) throws {
        guard !isAsWritten else { return }
        throw incoming.damage("\(noun) \(id) was changed after it was written (checksum mismatch)")
    }
}
