// Answers a question for totals: decides what to fetch, fetches it, and lets a store in memory answer.

internal import StallArchive
internal import StallModel
internal import StallQuery
internal import StallStore

/// One question for totals.
struct TotalsQuestion {
    let server: ClickHouseServer
    let question: AggregateQuestion
    let grouping: GroupingRow
    let days: KnownDays

    /// The time begins or ends within a day, and reports of these days are few enough to be read one by one: then a group
    /// that has no others has its exact quantiles, as in a file.
    private let readsEnds: Bool

    private var filter: ReportFilter { question.filter }
    private var key: GroupKey { question.key }

    init(_ server: ClickHouseServer, _ question: AggregateQuestion, _ grouping: GroupingRow)
        throws
    {
        (self.server, self.question, self.grouping) = (server, question, grouping)
        days = try KnownDays(server)
        readsEnds = try question.hasEdges && Self.countOfEnds(server, question) <= Self.endLimit
    }

    /// More than these are added up by the cluster.
    private static let endLimit: Int64 = 100_000

    /// How many reports began in the parts of days at the ends of the time.
    private static func countOfEnds(
        _ server: ClickHouseServer, _ question: AggregateQuestion
    ) throws -> Int64 {
        var conditions = ReportConditions(question.filter)
        conditions.add(outside: question.wholeDays)
        var rows = try server.rows(
            "select count() from \(conditions.revisions(server))", columnCount: 1)
        return try rows.step() ? try rows.integer() : 0
    }

    /// The first queries for roll-ups, whatever the days are; nothing where they depend on the days.
    static func firstStatements(
        _ server: ClickHouseServer, _ question: AggregateQuestion
    ) -> [ClickHouseQuery] {
        guard question.canRankFirst, !question.hasEdges else { return [] }
        return statements(
            ranking: CellSource(server, KnownDays(), question.filter, question.wholeDays),
            by: question.key)
    }

    /// The queries that decide which groups are listed.
    private static func statements(
        ranking source: CellSource, by key: GroupKey
    ) -> [ClickHouseQuery] {
        ClusterRanking.questions(source) + StallTally.questions(source)
            + (key == .signature
                ? [GroupSource.questionOfSpecial] + GroupSource.questionsOfCutFamilies : [])
    }

    /// - Parameter next: The next question: where many queries are sent at once, it is sent as well.
    func answer(
        _ grouper: any ReportGrouper, askingAhead next: [ClickHouseQuery]
    ) throws -> AggregateAnswer {
        var source = cells
        source.axis = question.areHosts ? .host : key.isOfFunctions ? .signature : .none
        guard !question.areOfHostsAndFunctions else {
            return try excerpt(source, withCells: false)
                .store.aggregates(question, grouper: grouper)
        }
        guard let largest = question.largest, question.canRankFirst, !readsEnds else {
            return try excerpt(source).store.aggregates(asked, grouper: grouper)
        }
        server.ask(ahead: Self.statements(ranking: source, by: key) + next)
        let ranking = try ClusterRanking(source, by: key, largest)
        let tally = try StallTally(source)
        source.signatures = ranking.listed
        var answer = try excerpt(source).store.aggregates(asked, grouper: grouper)
        tally.complete(&answer, ranked: filter.verdicts ?? [.stalled])
        answer.groupCount = ranking.groupCount
        answer.total = .nanoseconds(ranking.total_ns)
        answer.delayed = .nanoseconds(ranking.delayed_ns)
        answer.watched = ranking.watched
        return answer
    }

    /// The buckets of the whole days, and of their ends where these are not read one by one.
    private var cells: CellSource {
        var cells = CellSource(server, days, filter, question.wholeDays)
        cells.hasEnds = question.hasEdges && !readsEnds
        return cells
    }

    /// The stalls by day, whatever their group.
    func dailyTotals() throws -> DailyTotals? {
        var source = cells
        source.axis = question.areHosts ? .host : .none
        source.isDaily = true
        source.isCoarse = true
        // The content of the store in memory is selected already, and buckets do not contain the selection.
        var asked = readsEnds ? filter : filter.always
        (asked.apps, asked.versions, asked.loops, asked.causes) = ([], [], [], nil)
        return try excerpt(source).store.dailyTotals(asked)
    }

    /// Buckets have no durations where these are not asked for, and totals by day alone need none.
    private func needsDurations(_ cells: CellSource) -> Bool {
        question.withDurations && !cells.isCoarse
    }

    /// The question for the store in memory: it holds nothing of another time.
    private var asked: AggregateQuestion {
        var asked = question
        if !readsEnds { asked.filter = filter.always }
        return asked
    }

    // MARK: The store in memory

    /// - Parameter withCells: Otherwise all reports of the time are counted one by one.
    private func excerpt(_ source: CellSource, withCells: Bool = true) throws -> Excerpt {
        let hasCells = source.hasEnds || !source.range.isEmpty
        let parts = withCells && hasCells ? parts(of: source) : []
        server.ask(
            ahead: (key.isOfFunctions ? GroupSource.questions(source.signatures) : [])
                + parts.flatMap {
                    $0.questions(by: dimensionOfGroup, withDurations: needsDurations($0.cells))
                }, keepingOthers: true)
        var totals = try TotalsExcerpt(of: server.name, grouping)
        try totals.excerpt.fill {
            if key.isOfFunctions {
                let groups = try GroupSource(server: server).groups(source.signatures)
                for (key, group) in groups.sorted(by: { $0.key < $1.key }) {
                    _ = try totals.excerpt.signature(key, group)
                }
            }
            for part in parts { try add(part, to: &totals) }
            if !withCells || readsEnds {
                try addReports(to: &totals, besides: withCells ? source.range : nil)
            }
        }
        return totals.excerpt
    }

    private func addReports(to totals: inout TotalsExcerpt, besides range: Range<Int64>?) throws {
        var conditions = ReportConditions(filter)
        if let range { conditions.add(outside: range) }
        try LightReport.all(server, conditions) { try totals.add($0) }
    }

    /// Buckets that share one `CellPlace`.
    private struct Part {
        var place: CellPlace
        var cells: CellSource
        /// By single days beside them, where they are asked for.
        var days: CellSource?
        /// The buckets are the sums of the single days: of a few groups it is better to read these alone.
        var isAddedUp = false

        /// The queries of `add`, but for the histograms of reports.
        func questions(
            by dimension: ClickHouseQuery, withDurations: Bool
        ) -> [ClickHouseQuery] {
            (withDurations ? [cells.histogramQuestion(by: dimension)] : [])
                + (isAddedUp ? [] : cells.questions) + (days?.questions ?? [])
        }
    }

    private func parts(of cells: CellSource) -> [Part] {
        // Between two times single days are buckets where no 32 of them fit, and only beside buckets where they do.
        let hasBoth = readsEnds && question.withDays && question.largest != nil
        return (hasBoth ? CellPlace.parts(of: cells.range) : [cells.range]).map { range in
            var source = cells
            source.range = range
            let place = CellPlace(
                range, asksForDays: question.withDays, isAlways: !readsEnds,
                listsAll: question.largest == nil)
            source.isDaily = place.isDaily
            var part = Part(place: place, cells: source)
            guard place.needsDays else { return part }
            source.isDaily = true
            part.isAddedUp = source.signatures != nil
            // The days of a group need not have builds: those of its first bucket do as well as any.
            source.isCoarse = source.axis == .signature && !part.isAddedUp
            part.days = source
            return part
        }
    }

    private func add(_ part: Part, to totals: inout TotalsExcerpt) throws {
        let (source, place) = (part.cells, part.place)
        var histograms =
            needsDurations(source) ? try source.histograms(by: dimensionOfGroup) : [:]
        let days = try part.days?.cells()
        let cells =
            if part.isAddedUp, let days { Self.addingUp(days) } else { try source.cells() }
        let all = cells.sorted { $0.key.precedes($1.key) }
        let there = question.withExamples ? try examples(all.map(\.value)) : []
        var firstOfGroup: [Int64: CellKey] = [:]
        for (key, cell) in all {
            var cell = cell
            if source.rankedVerdicts.contains(key.verdict) {
                firstOfGroup[key.signature] = firstOfGroup[key.signature] ?? key
                // The first bucket of those that share a histogram has it: they are added up in the end.
                let shared = CellSource.HistogramKey(
                    isWatched: key.isWatched, signature: key.signature, host: key.host,
                    day: key.day, dimension: dimension(of: key))
                cell.histogram = histograms.removeValue(forKey: shared) ?? DurationHistogram()
            }
            try totals.add(
                key, cell, dayCount: place.dayCount, day: place.isDaily ? key.day : place.day,
                axis: source.axis,
                isExampleThere: cell.longest.map { there.contains($0.id) } ?? false)
        }
        guard let days else { return }
        var ofDays: [CellKey: Cell] = [:]
        for (key, cell) in days where source.rankedVerdicts.contains(key.verdict) {
            var place = key
            if source.axis == .signature, let first = firstOfGroup[key.signature] {
                place = first
                place.day = key.day
            }
            ofDays[place, default: Cell()].add(cell)
        }
        for (key, cell) in ofDays.sorted(by: { $0.key.precedes($1.key) }) {
            try totals.add(
                key, cell, dayCount: 1, day: key.day, axis: source.axis, isExampleThere: false)
        }
    }

    /// Buckets of single days without their days.
    private static func addingUp(_ days: [CellKey: Cell]) -> [CellKey: Cell] {
        var sums: [CellKey: Cell] = [:]
        for (key, cell) in days {
            var place = key
            place.day = 0
            sums[place, default: Cell()].add(cell)
        }
        return sums
    }

    /// The column that groups are made by, where no function and no host does, and the same of a bucket.
    private var dimensionOfGroup: ClickHouseQuery {
        switch key {
        case .app: "app"
        case .version: "concat(app, '\\0', version)"
        case .loop: "loop_name"
        case .cause: "toString(cause)"
        case .signature, .family, .function, .inclusive, .host, .os, .device: "''"
        }
    }

    private func dimension(of cell: CellKey) -> String {
        switch key {
        case .app: cell.app
        case .version: cell.app + "\0" + cell.version
        case .loop: cell.loop
        case .cause: "\(cell.cause)"
        case .signature, .family, .function, .inclusive, .host, .os, .device: ""
        }
    }

    /// The longest reports that are still stored.
    private func examples(_ cells: [Cell]) throws -> Set<UniqueID> {
        let longest = cells.compactMap(\.longest)
        guard let pruned = grouping.prunedBefore?.microseconds else {
            return Set(longest.map(\.id))
        }
        var there = Set(longest.filter { $0.day > pruned.day }.map(\.id))
        for part in longest.filter({ $0.day <= pruned.day }).map(\.id).parts() {
            var rows = try server.rows(
                "select id from report where day <= \(pruned.day) and id in \(list: part.map(\.bytes))",
                columnCount: 1)
            while try rows.step() { there.insert(try rows.uniqueID()) }
        }
        return there
    }
}

/// The key under which buckets are put so that the store in memory reads each once: it reads buckets of 32 days where
/// it can, and single days where it has to.
struct CellPlace {
    var isDaily = false
    var dayCount: Int64 = 32
    var day: Int64 = 0
    /// Single days are read beside the buckets of 32.
    var needsDays = false

    private static let long: Int64 = 32

    /// The days of a range that buckets of 32 make up; empty without any.
    private static func longDays(of range: Range<Int64>) -> Range<Int64> {
        let first =
            range.lowerBound == .min
            ? Int64.min : (range.lowerBound + long - 1).floored(by: long) * long
        let end =
            range.upperBound == .max ? Int64.max : range.upperBound.floored(by: long) * long
        return first..<max(first, end)
    }

    /// The parts of a range that are read as single days, as buckets of 32, and as single days again.
    static func parts(of range: Range<Int64>) -> [Range<Int64>] {
        let days = longDays(of: range)
        guard !days.isEmpty else { return [range] }
        return [
            range.lowerBound..<days.lowerBound, days, days.upperBound..<range.upperBound,
        ].filter { !$0.isEmpty }
    }

    init(_ range: Range<Int64>, asksForDays: Bool, isAlways: Bool, listsAll: Bool) {
        let days = Self.longDays(of: range)
        guard isAlways || !days.isEmpty, !(asksForDays && listsAll) else {
            (isDaily, dayCount) = (true, 1)
            return
        }
        needsDays = asksForDays
        if !isAlways {
            day = days.lowerBound == .min ? days.upperBound - Self.long : days.lowerBound
        }
    }
}

extension CellKey {
    /// An order that does not depend on the run of the program.
    fileprivate func precedes(_ other: CellKey) -> Bool {
        // Numbers first: texts are compared where these are equal.
        guard signature == other.signature, day == other.day, host == other.host else {
            return (signature, day, host) < (other.signature, other.day, other.host)
        }
        guard app == other.app, version == other.version, loop == other.loop else {
            return (app, version, loop) < (other.app, other.version, other.loop)
        }
        return (verdict, cause, isWatched ? 1 : 0)
            < (other.verdict, other.cause, other.isWatched ? 1 : 0)
    }
}

extension AggregateQuestion {
    /// The days that the filter's time has all of.
    fileprivate var wholeDays: Range<Int64> {
        let day = Int64.microsecondsOfDay
        let first =
            filter.since.map { $0.microseconds }
            .map { $0.day * day == $0 ? $0.day : $0.day + 1 } ?? .min
        let end = filter.until?.microseconds.day ?? .max
        return first..<max(first, end)
    }

    /// Whether the time begins or ends within a day: reports of these days are counted one by one.
    fileprivate var hasEdges: Bool {
        let times = [filter.since, filter.until].compactMap { $0?.microseconds }
        return wholeDays.isEmpty || times.contains { $0.day * Int64.microsecondsOfDay != $0 }
    }

    fileprivate var areHosts: Bool { !filter.hosts.isEmpty || key == .host }

    /// No bucket has both the group and the host of a stall.
    fileprivate var areOfHostsAndFunctions: Bool { areHosts && key.isOfFunctions }

    /// Whether a few numbers of all groups decide which are listed, so that the rest is read of these only: where all
    /// are in buckets.
    fileprivate var canRankFirst: Bool {
        guard let largest else { return false }
        return key.isOfFunctions && !areHosts && largest.order != .p95
    }
}

extension ReportFilter {
    /// The same without its time.
    fileprivate var always: ReportFilter {
        var always = self
        (always.since, always.until) = (nil, nil)
        return always
    }
}

extension GroupKey {
    /// Whether the signature alone determines the group.
    var isOfFunctions: Bool {
        switch self {
        case .signature, .family, .function, .inclusive: true
        case .cause, .loop, .version, .host, .app, .os, .device: false
        }
    }
}
