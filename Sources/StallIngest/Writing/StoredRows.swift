// Compares an incoming store with the central one, before the file is deleted. It relies on no position and on no
// earlier answer: each row that ingest takes is looked up as it is stored now.

internal import StallArchive
internal import StallModel
internal import StallQuery
internal import StallStore

/// A kind of rows besides reports, as messages name it.
package enum StoredRowKind: String, CaseIterable, Sendable {
    case run = "process runs"
    case image = "images"
    case name = "names"
    case loop = "watched loops"
    case exposure = "watched time"
    case suppression = "suppressed stalls"
    case loss = "losses"
}

/// The rows of a store that the central store does not have.
package struct MissingRows: Hashable, Sendable {
    package var reportCount = 0
    package var others: [StoredRowKind: Int] = [:]
    /// Stalls whose reports were pruned in the incoming store: only its roll-ups count them, which are not imported.
    package var rolledUpCount = 0

    /// The sources that the rows are of, by their numbers in the incoming store.
    var sources: Set<Int64> = []

    package var otherCount: Int { others.values.reduce(0, +) }
    package var count: Int { reportCount + otherCount + rolledUpCount }

    mutating func add(_ kind: StoredRowKind, of source: Int64? = nil) {
        others[kind, default: 0] += 1
        if let source { sources.insert(source) }
    }

    mutating func addReport(of source: Int64) {
        reportCount += 1
        sources.insert(source)
    }
}

/// Looks up the rows of incoming stores. Works within the transaction of its caller, which has written all noted rows.
final class StoredRows {
    private let interner: Interner
    private let families: SourceFamilies
    private let reports: ReportRows
    private let exposures: ExposureRows
    private let pruned: PrunedReports
    private let findLoop, findExposure, findSuppression, findLoss, findWatched, findLoad,
        findImage, anyLoop, findName, findFirstDay: Statement

    init(
        _ connection: Connection, interner: Interner, families: SourceFamilies, reports: ReportRows,
        exposures: ExposureRows, pruned: PrunedReports
    ) throws {
        self.interner = interner
        self.families = families
        self.reports = reports
        self.exposures = exposures
        self.pruned = pruned
        findLoop = try connection.prepare(
            "select id from loop where run = ? and name = ? and threshold_ns = ?")
        findExposure = try connection.prepare(
            """
            select count(*) from exposure where source = ? and revision = ? and loop = ?
                and start_us = ? and watched_ns >= ?
            """)
        findSuppression = try connection.prepare(
            """
            select count(*) from suppression where source = ? and loop = ? and place = ?
                and reason = ? and stall_count >= ? and total_ns >= ?
            """)
        findLoss = try connection.prepare(
            """
            select count(*) from loss
            where source = ? and run = ? and reason = ? and report_count >= ?
            """)
        findWatched = try connection.prepare(
            "select count(*) from watched_loop where source = ? and loop = ?")
        findLoad = try connection.prepare(
            """
            select count(*) from image_load join image on image.id = image_load.image
            where image_load.run = ? and image.hash = ?
            """)
        findImage = try connection.prepare("select id from image where hash = ?")
        anyLoop = try connection.prepare("select exists (select 1 from loop where run = ?)")
        // Names that contradict those of another source are counted as a conflict instead.
        findName = try connection.prepare(
            """
            select case
                when exists (select 1 from name_conflict where location = location.id) then 3
                when detail > 0 then detail
                else -(not exists (select 1 from location_frame where location = location.id)) end
            from location where hash = ?
            """)
        findFirstDay = try connection.prepare(
            """
            select min(day) from (
                select min(day) as day from exposure_day
                union all select min(first_day) from rollup where day_count = 1)
            """)
    }

    /// The rows of a store that was imported and that are not here, and should be.
    func missing(of incoming: IncomingStore) throws -> MissingRows {
        try Comparison(rows: self, incoming: incoming).run()
    }

    /// One comparison: it knows what the incoming store's numbers are here.
    private final class Comparison {
        let rows: StoredRows
        let incoming: IncomingStore
        var missing = MissingRows()
        /// Reports that began before it may have been pruned, and rows that only they used; nil where nothing was.
        let prunedBefore_us: Int64?
        /// Watched time of earlier days went with the roll-ups of these days, if anything was pruned.
        let firstDay: Int64
        /// Process runs and loops here, by their numbers in the incoming store; nil for those that are not here.
        var runs: [Int64: (id: Int64?, host: String)] = [:]
        var loops: [Int64: (id: Int64?, host: String)] = [:]

        init(rows: StoredRows, incoming: IncomingStore) throws {
            self.rows = rows
            self.incoming = incoming
            prunedBefore_us = try rows.families.prunedBefore()
            if case .value(let day) = try rows.findFirstDay.first() {
                firstDay = day
            } else {
                firstDay = .max
            }
        }

        var wasPruned: Bool { prunedBefore_us != nil }

        func run() throws -> MissingRows {
            for source in incoming.sources {
                let family = try rows.families.branches(of: source.origin ?? source.store)
                try compareReports(of: source.id, family)
                try compareExposures(of: source.id, family)
                try compareCounts(of: source.id, family)
            }
            try compareRuns()
            try compareNames()
            missing.rolledUpCount = try incoming.rolledUpCount()
            return missing
        }

        private func compareReports(
            of source: Int64, _ family: [SourceFamilies.Branch]
        ) throws {
            let theirs = try incoming.connection.prepare(
                """
                select seq, id, start_us, loop, state, duration_ns from report
                where source = ? order by seq
                """)
            try theirs.bind(source)
            while try theirs.step() {
                let (seq, id) = (try theirs.integer(at: 0), try theirs.uniqueID(at: 1))
                let progress = ReportProgress(
                    id: id, state: try theirs.value(at: 4),
                    duration_ns: try theirs.integer(at: 5))
                if let holder = try rows.families.holder(among: family, seq: seq, id: id),
                    let known = try rows.reports.progress(source: holder, seq: seq)
                {
                    if progress.surpasses(known) { missing.addReport(of: source) }
                    continue
                }
                // The same report under another source counts once.
                let start_us = try theirs.integer(at: 2)
                if try rows.families.holdsAnywhere(progress, start_us: start_us) { continue }
                if let prunedBefore_us, start_us < prunedBefore_us,
                    try rows.pruned.mayBeGone(
                        host: loop(theirs.integer(at: 3)).host, day: start_us.day)
                {
                    continue
                }
                missing.addReport(of: source)
            }
        }

        private func compareExposures(
            of source: Int64, _ family: [SourceFamilies.Branch]
        ) throws {
            let theirs = try incoming.connection.prepare(
                "select revision, loop, start_us, watched_ns from exposure where source = ?")
            try theirs.bind(source)
            while try theirs.step() {
                let (start_us, watched_ns) = (try theirs.integer(at: 2), try theirs.integer(at: 3))
                if wasPruned, start_us.day < firstDay { continue }
                if let loop = try loop(theirs.integer(at: 1)).id,
                    try holdsExposure(
                        family, revision: theirs.integer(at: 0), loop: loop, start_us: start_us,
                        watched_ns: watched_ns)
                {
                    continue
                }
                missing.add(.exposure, of: source)
            }
        }

        private func holdsExposure(
            _ family: [SourceFamilies.Branch], revision: Int64, loop: Int64, start_us: Int64,
            watched_ns: Int64
        ) throws -> Bool {
            for branch in family
            where try rows.findExposure.number(
                branch.id, revision, loop, start_us, watched_ns) > 0
            {
                return true
            }
            let wanted = ExposureRow(
                revision: revision, loop: loop, start_us: start_us, watched_ns: watched_ns,
                busy_ns: 0, readyDelay_ns: 0, microStallCount: 0, microStall_ns: 0,
                lengths: LengthHistogram())
            return try rows.exposures.isElsewhere(wanted, source: noSource)
        }

        /// Suppressed stalls, losses and watched loops.
        private func compareCounts(
            of source: Int64, _ family: [SourceFamilies.Branch]
        ) throws {
            let suppressions = try incoming.connection.prepare(
                """
                select loop, place, reason, stall_count, total_ns from suppression
                where source = ?
                """)
            try suppressions.bind(source)
            while try suppressions.step() {
                let loop = try loop(suppressions.integer(at: 0)).id
                let isHeld = try loop.map { loop in
                    try family.contains {
                        try rows.findSuppression.number(
                            $0.id, loop, suppressions.integer(at: 1), suppressions.integer(at: 2),
                            // A store that was tampered with may count less than none.
                            max(0, suppressions.integer(at: 3)), suppressions.integer(at: 4)) > 0
                    }
                }
                if isHeld != true { missing.add(.suppression, of: source) }
            }
            for loss in try incoming.rows().losses(ofSource: source, after: -1) {
                let run = try self.run(loss.run).id
                let isHeld = try run.map { run in
                    try family.contains {
                        try rows.findLoss.number(
                            $0.id, run, Int64(loss.reason.rawValue), loss.count) > 0
                    } || mayBeGone(run: run)
                }
                if !(isHeld ?? wasPruned) { missing.add(.loss, of: source) }
            }
            for number in try incoming.notedWatchedLoops(ofSource: source) {
                let loop = try loop(number).id
                let isHeld = try loop.map { loop in
                    try family.contains { try rows.findWatched.number($0.id, loop) > 0 }
                }
                if !(isHeld ?? wasPruned) { missing.add(.loop, of: source) }
            }
        }

        /// The runs that rows belong to, and the images that they had loaded.
        private func compareRuns() throws {
            let theirs = try incoming.connection.prepare(
                """
                select id from process_run where id in (
                    select run from loop where id in (
                        select loop from report union select loop from exposure
                        union select loop from suppression)
                    union select run from loss)
                order by id
                """)
            while try theirs.step() {
                let number = try theirs.integer(at: 0)
                guard let run = try run(number).id else {
                    if !wasPruned { missing.add(.run) }
                    continue
                }
                for load in try incoming.rows().loads(ofRun: number) {
                    let hash = try incoming.rows().image(load.image).hash
                    guard try rows.findLoad.number(run, hash) == 0 else { continue }
                    if wasPruned, try rows.findImage.found(hash) == nil || mayBeGone(run: run) {
                        continue
                    }
                    missing.add(.image)
                }
            }
        }

        private func compareNames() throws {
            var last = Int64.min
            while true {
                let places = try incoming.rows().namedLocations(after: -1, behind: last)
                for place in places {
                    guard let detail = try rows.findName.found(place.hash) else {
                        if !wasPruned { missing.add(.name) }
                        continue
                    }
                    if detail < place.detail { missing.add(.name) }
                }
                guard places.count == IncomingRows.namedLimit, let place = places.last else {
                    return
                }
                last = place.id
            }
        }

        /// Whether a run's rows besides its counts were pruned: with its last loop go its losses and images.
        private func mayBeGone(run: Int64) throws -> Bool {
            try wasPruned && rows.anyLoop.number(run) == 0
        }

        private func run(_ number: Int64) throws -> (id: Int64?, host: String) {
            if let known = runs[number] { return known }
            let run = try incoming.rows().run(number)
            let found = (id: try rows.interner.knownRun(run), host: run.host)
            if runs.count == rememberedCount { runs.removeAll() }
            runs[number] = found
            return found
        }

        private func loop(_ number: Int64) throws -> (id: Int64?, host: String) {
            if let known = loops[number] { return known }
            let loop = try incoming.rows().loop(number)
            let run = try run(loop.run)
            let found = (
                id: try run.id.flatMap {
                    try rows.findLoop.found($0, loop.name, loop.threshold_ns)
                },
                host: run.host
            )
            if loops.count == rememberedCount { loops.removeAll() }
            loops[number] = found
            return found
        }
    }
}

/// The number of no source.
private let noSource: Int64 = -1
/// How many runs or loops a comparison remembers.
private let rememberedCount = 50_000
