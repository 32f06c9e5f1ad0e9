// Answers ranking's questions from as few rows as can be: buckets of 32 days, buckets of single days at the edges of
// the time that was asked for, and single reports for the parts of days that are left. An agent's store has no buckets:
// its reports are read and grouped here.

internal import StallModel
internal import StallQuery
internal import StallStore

/// One question for roll-ups, on one snapshot of a store.
struct RollUpQuery {
    let connection: Connection
    let question: AggregateQuestion
    var dimensions = KnownDimensions()
    var groups: [Int64: ReportGroup] = [:]
    var keys = RollUpKeys()
    var sums: [RollUpSum] = []
    /// The sums, by the dimension row's index.
    var dimensionTotals: [DimensionTally] = []
    var lost = Duration.zero
    var delayed = Duration.zero
    var watched = StallTotals()
    /// Buckets of watched loops are added up on their own as well.
    var areMixed = false
    var special = SpecialSignatures()
    /// Groups of cut stacks that are parts of others now.
    private var joins: [Int: Int] = [:]
    /// Where the totals are read, and the day that these are complete from.
    private var table = RollUpTable.groups
    private var cellsFrom = Int64.min
    /// The names of the hosts that are selected, where the totals are by host.
    private var hosts: [Int64: String] = [:]
    /// Other stores are added to it: every group is read whole, and is identified by its content, not by its row.
    var isPart = false
    /// Where the sources of other stores are, by the numbers that they have here.
    var foreignSources: [Int64: (connection: Connection, source: Int64)] = [:]

    init(_ connection: Connection, _ question: AggregateQuestion) {
        self.connection = connection
        self.question = question
    }

    var filter: ReportFilter { question.filter }
    var key: GroupKey { question.key }
    private var withDays: Bool { question.withDays }
    var largest: LargestGroups? { question.largest }

    /// - Parameter grouper: For reports whose group is not stored.
    mutating func answer(_ grouper: any ReportGrouper) throws -> AggregateAnswer {
        let isGrouped = try connection.isGrouped
        if isGrouped {
            if needsGroups { groups = try SignatureRows.groups(connection) }
            if key == .signature { special = try SpecialSignatures(connection) }
        }
        let areCells = isGrouped ? try chooseTable() : false
        guard areCells else {
            try addReports(from: filter.since, until: filter.until, isGrouped ? nil : grouper)
            try joinCutGroups()
            return try makeAnswer(listing: try largest.map(listed) ?? shownIndices)
        }
        try dimensions.load(connection, filter)
        areMixed = dimensions.areMixed
        let days = try addEdges()
        let spans = spans(days)
        guard let largest else {
            for span in spans { try addCells(span) }
            try joinCutGroups()
            return try makeAnswer(listing: shownIndices)
        }
        // Measured: where groups are many, to rank all of them first and then to read the rest of the few that are
        // listed takes half the time of reading it of all.
        let ranksFirst = key.isOfFunctions && largest.order != .p95
        for span in spans {
            if ranksFirst { try rankCells(span) } else { try addCells(span) }
        }
        try joinCutGroups()
        let listed = try listed(largest)
        let selection = selection(of: listed)
        if ranksFirst { for span in spans { try addCells(span, of: selection) } }
        if withDays { try addDays(days, of: selection) }
        return try makeAnswer(listing: listed)
    }

    /// The ranked stalls by day, of all groups: SQLite adds up the buckets, which are many for a program and few for
    /// it.
    ///
    /// - Returns: Nil where the question cannot be answered from buckets.
    mutating func dailyTotals() throws -> DailyTotals? {
        guard try chooseTable() else { return nil }
        try dimensions.load(connection, filter)
        let days = try addEdges()
        var daily = DailyTotals()
        for (dimension, tally) in dimensionTotals.enumerated()
        where tally.count > 0 && isRanked(dimensions[dimension].verdict) {
            daily.note(first_us: tally.first_us, last_us: tally.last_us)
        }
        for sum in sums { for (day, totals) in sum.days { daily.add(totals, day: day) } }
        guard !days.isEmpty else { return daily }
        let list = hosts.keys.map { String($0) }.joined(separator: ", ")
        // Sums of halves, which no number of buckets makes too large: SQLite's own sum fails beyond 64 bits.
        let rows = try connection.prepare(
            """
            select cohort, first_day, cast(total(report_count) as integer), sum(total_ns >> 32),
                sum(total_ns & 0xffffffff), max(max_ns), min(first_us), max(last_us)
            from \(table.name) where day_count = 1 and first_day >= ? and first_day < ?
                and \(Connection.narrowing("cohort", to: dimensions.selectedRows))
                and \(filter.hosts.isEmpty ? "true" : "host in (\(list))")
            group by first_day, cohort
            """)
        try rows.bind(days.lowerBound, days.upperBound)
        while try rows.step() {
            guard let dimension = dimensions.index(ofRow: try rows.integer()),
                isRanked(dimensions[dimension].verdict)
            else {
                rows.skipRest()
                continue
            }
            let day = Int(try rows.day())
            var totals = StallTotals()
            totals.count = Int(try rows.count())
            let (high, overflow) = try rows.integer().multipliedReportingOverflow(by: 1 << 32)
            let low = try rows.integer()
            totals.total = .nanoseconds(overflow ? .max : high.addingSaturated(low))
            totals.longest = .nanoseconds(max(0, try rows.integer()))
            daily.add(totals, day: day)
            daily.note(first_us: try rows.time_us(), last_us: try rows.time_us())
        }
        return daily
    }

    /// - Returns: Whether buckets can answer the question: none has both the group and the host of a stall.
    mutating func chooseTable() throws -> Bool {
        guard !filter.hosts.isEmpty || key == .host else { return true }
        guard !key.isOfFunctions, let first = try connection.hostsFromDay() else { return false }
        (table, cellsFrom) = (.hosts, first)
        let rows = try connection.prepare("select id, name from host")
        while try rows.step() {
            let (id, name) = (try rows.integer(), rows.text())
            if filter.hosts.isEmpty || filter.hosts.contains(name) { hosts[id] = name }
        }
        return true
    }

    /// The host of a bucket; nil for one that is not selected. Empty where buckets are not by host.
    private func host(_ number: Int64) -> String? { table == .hosts ? hosts[number] : "" }

    private func cells(
        _ columns: String, _ span: RollUpBucketSpan, signatures: [Int64]? = nil
    ) throws -> RollUpBucketCursor {
        let keys = table == .hosts && !filter.hosts.isEmpty ? Array(hosts.keys) : signatures
        return try RollUpBucketCursor(
            connection, columns, span, dimensions, of: table, signatures: keys)
    }

    // MARK: Buckets

    /// Adds the reports of the parts of days at the edges of the time that was asked for.
    ///
    /// - Returns: The whole days between.
    mutating func addEdges() throws -> Range<Int64> {
        let day = Int64.microsecondsOfDay
        let since = filter.since?.microseconds
        let until = filter.until?.microseconds
        let first = max(since.map { $0.day * day == $0 ? $0.day : $0.day + 1 } ?? .min, cellsFrom)
        let end = until.map(\.day) ?? .max
        guard first < end else {
            try addReports(from: filter.since, until: filter.until, nil)
            return first..<first
        }
        if first > .min, since ?? .min < first * day {
            try addReports(from: filter.since, until: UnixTime(microseconds: first * day), nil)
        }
        if let until, end * day < until {
            try addReports(from: UnixTime(microseconds: end * day), until: filter.until, nil)
        }
        return first..<end
    }

    /// The longest buckets that make up these days.
    func spans(_ days: Range<Int64>) -> [RollUpBucketSpan] {
        guard !days.isEmpty else { return [] }
        let long = RollUpCell.longDays
        let (first, end) = (days.lowerBound, days.upperBound)
        let firstLong = first == .min ? first : RollUpCell.longDay(first + long - 1)
        let endLong = end == .max ? end : RollUpCell.longDay(end)
        guard !daysComeWithCells, firstLong < endLong else {
            return [RollUpBucketSpan(dayCount: 1, days: days)]
        }
        return [
            RollUpBucketSpan(dayCount: 1, days: first..<firstLong),
            RollUpBucketSpan(dayCount: long, days: firstLong..<endLong),
            RollUpBucketSpan(dayCount: 1, days: endLong..<end),
        ].filter { !$0.days.isEmpty }
    }

    /// Notes the numbers that groups are ordered by, and nothing else of them.
    private mutating func rankCells(_ span: RollUpBucketSpan) throws {
        var cells = try cells(
            "report_count, total_ns, max_ns, first_us, last_us, delayed_ns", span)
        while let dimension = try cells.next() {
            let (row, count) = (cells.row, try cells.row.count(at: 3))
            tally(dimension, count, try row.time_us(at: 6), try row.time_us(at: 7))
            guard isRanked(dimensions[dimension].verdict) else { continue }
            let index = try index(dimension: dimension, signature: row.integer(at: 1), host: "")
            noteWhole(index, try row.integer(at: 1))
            let total = try row.integer(at: 4)
            noteSize(
                of: index, count, total: total, delayed: try row.delayed_ns(at: 8, ofTotal: total),
                longest: try row.integer(at: 5), isWatched: dimensions[dimension].isWatched)
        }
    }

    /// Adds buckets to their groups.
    ///
    /// - Parameter selection: Nil for all groups, which were not ranked before.
    mutating func addCells(_ span: RollUpBucketSpan, of selection: Selection? = nil) throws {
        var cells = try cells(RollUpTotals.columns, span, signatures: selection?.signatures)
        while let dimension = try cells.next() {
            let row = cells.row
            guard let hostName = host(try row.integer(at: 1)) else { continue }
            if selection == nil {
                tally(
                    dimension, try row.count(at: 3), try row.time_us(at: 10),
                    try row.time_us(at: 11)
                )
            }
            guard isRanked(dimensions[dimension].verdict) else { continue }
            let signature = try row.integer(at: 1)
            let index = try index(dimension: dimension, signature: signature, host: hostName)
            if let selection, !selection.contains[index] { continue }
            let total = try row.integer(at: 4)
            if selection == nil {
                noteWhole(index, signature)
                noteSize(
                    of: index, try row.count(at: 3), total: total,
                    delayed: try row.delayed_ns(at: 13, ofTotal: total),
                    longest: try row.integer(at: 7),
                    isWatched: dimensions[dimension].isWatched)
            }
            if areMixed {
                var cell = RollUpTotals()
                try cell.add(row, at: 3)
                sums[index].totals.add(cell)
                sums[index].note(cell, isWatched: dimensions[dimension].isWatched)
            } else {
                try sums[index].totals.add(row, at: 3)
                if !dimensions[dimension].isWatched {
                    sums[index].noteUnwatched(try row.count(at: 3))
                }
            }
            sums[index].note(total, dimension: dimension, signature: signature)
            if daysComeWithCells {
                sums[index].note(
                    day: try row.day(at: 2), count: try row.count(at: 3), total: total,
                    longest: try row.integer(at: 7))
            }
        }
    }

    private var daysComeWithCells: Bool { withDays && (isPart || largest == nil) }

    /// Adds the days of listed groups, which buckets of 32 days do not resolve.
    private mutating func addDays(_ days: Range<Int64>, of selection: Selection) throws {
        guard !days.isEmpty else { return }
        var cells = try cells(
            "report_count, total_ns, max_ns", RollUpBucketSpan(dayCount: 1, days: days),
            signatures: selection.signatures)
        while let dimension = try cells.next() {
            let row = cells.row
            guard isRanked(dimensions[dimension].verdict),
                let hostName = host(try row.integer(at: 1))
            else { continue }
            let index = try index(
                dimension: dimension, signature: row.integer(at: 1), host: hostName)
            guard selection.contains[index] else { continue }
            sums[index].note(
                day: try row.day(at: 2), count: try row.count(at: 3),
                total: try row.integer(at: 4),
                longest: try row.integer(at: 5))
        }
    }

    /// The groups that are listed.
    struct Selection {
        /// By the index of each group's sum.
        var contains: [Bool]
        /// The rows of the signatures that they are of; nil where something else makes groups.
        var signatures: [Int64]?
    }

    private func selection(of listed: [Int]) -> Selection {
        var contains = Array(repeating: false, count: sums.count)
        for index in listed { contains[index] = true }
        let signatures = key.isOfFunctions ? keys.rows { contains[$0] } : nil
        return Selection(contains: contains, signatures: signatures)
    }

    // MARK: Reports

    /// - Parameter grouper: Nil where the groups are stored.
    mutating func addReports(
        from since: UnixTime?, until: UnixTime?, _ grouper: (any ReportGrouper)?
    ) throws {
        let loops = try LoopFacts.all(connection, filter)
        let watchedLoops = try WatchedLoops(connection)
        var registry: [ReportGroup: Int64] = [:]
        var decided: [ReportGroup] = []
        let decider = try grouper.map { grouper in
            try GroupDecider(connection, grouper) { group in
                if let known = registry[group] { return known }
                decided.append(group)
                registry[group] = Int64(decided.count)
                return Int64(decided.count)
            }
        }
        let (start, end) = (since?.microseconds ?? .min, until?.microseconds ?? .max)
        let ofDays = Connection.reportsByDay(start.day...max(start.day, end.day))
        let rows = try connection.prepare(
            """
            select \(CountedReport.columns)\(decider == nil ? "" : ", report.samples")
            from \(decider == nil ? ofDays : "report")
            where report.start_us >= ? and report.start_us < ?
                and \(filter.hosts.isEmpty ? "true" : Connection.narrowing("report.loop", to: Array(loops.keys)))
            """)
        try rows.bind(start, end)
        while try rows.step() {
            // Where groups are decided, there are samples behind it, of which most are not needed.
            var report = try CountedReport(rows)
            defer { rows.skipRest() }
            guard let loop = loops[report.loop] else { continue }
            let isWatched = watchedLoops.contains(report)
            let dimension = dimensions.index(
                of: RollUpDimension(
                    app: loop.app, version: loop.version, buildID: loop.buildID, loop: loop.name,
                    verdict: report.verdict, cause: report.cause, isWatched: isWatched))
            guard filter.verdicts?.contains(report.verdict) ?? true,
                filter.allows(cause: report.cause)
            else { continue }
            tally(dimension, 1, report.entry.start_us, report.entry.start_us)
            guard isRanked(report.verdict) else { continue }
            if let decider {
                let decision = try decider.decide(
                    rows.samples(), of: report.entry.duration_ns, cause: report.cause,
                    executable: loop.buildID)
                report.signature = decision.signature
                if groups[decision.signature] == nil {
                    let group = decided[Int(decision.signature) - 1]
                    groups[decision.signature] = group
                    if key == .signature { special.add(group, row: decision.signature) }
                }
            }
            guard let signature = report.signature else { continue }
            let index = try index(dimension: dimension, signature: signature, host: loop.host)
            let total = report.entry.duration_ns
            noteWhole(index, signature)
            noteSize(
                of: index, 1, total: total, delayed: report.entry.delayed_ns, longest: total,
                isWatched: isWatched)
            sums[index].note(report.entry, isWatched: isWatched)
            sums[index].totals.add(report.entry)
            sums[index].durations.append(total)
            sums[index].note(total, dimension: dimension, signature: signature)
            if withDays {
                sums[index].note(
                    day: report.entry.start_us.day, count: 1, total: total, longest: total)
            }
        }
    }

    // MARK: Sums

    private func isRanked(_ verdict: StallVerdict) -> Bool {
        filter.verdicts?.contains(verdict) ?? (verdict == .stalled)
    }

    private mutating func tally(_ dimension: Int, _ count: Int64, _ first: Int64, _ last: Int64) {
        while dimensionTotals.count <= dimension { dimensionTotals.append(DimensionTally()) }
        dimensionTotals[dimension].add(count, first, last)
    }

    /// Adds to the total of all groups, and to the numbers that they are ordered by where not all are listed.
    private mutating func noteSize(
        of index: Int, _ count: Int64, total: Int64, delayed: Int64, longest: Int64,
        isWatched: Bool
    ) {
        lost += .nanoseconds(total)
        self.delayed += .nanoseconds(delayed)
        if isWatched {
            watched.count.addSaturated(Int(count))
            watched.total += .nanoseconds(total)
            watched.delayed += .nanoseconds(delayed)
        }
        sums[index].noteSize(
            largest?.order ?? .total, count: count, total: total, delayed: delayed,
            longest: longest, isWatched: isWatched)
    }

    private mutating func noteWhole(_ index: Int, _ signature: Int64) {
        if special.cut.isEmpty || special.cut[signature] == nil { sums[index].noteWhole() }
    }

    /// Counts groups whose stacks were all cut in those that they are the beginnings of.
    mutating func joinCutGroups() throws {
        guard key == .signature, !special.cut.isEmpty,
            sums.contains(where: { !$0.isWhole })
        else { return }
        if !isPart {
            groups.merge(
                try SignatureRows.groups(connection, ofFamilies: Set(special.cut.values))
            ) { known, _ in known }
        }
        var indexes: [Int] = []
        var joinable: [JoinableGroup] = []
        for index in sums.indices {
            guard let group = groups[keys.rows[index]] else { continue }
            indexes.append(index)
            joinable.append(
                JoinableGroup(
                    signature: group.signature, family: group.family, frames: group.frames,
                    isCut: !sums[index].isWhole, total: sums[index].lost))
        }
        for (cut, whole) in joinsOfCutGroups(joinable) { joins[indexes[cut]] = indexes[whole] }
        for (cut, whole) in joins {
            sums[whole].add(sums[cut])
            sums[cut] = RollUpSum()
        }
        keys.redirect(joins)
    }

    /// Whether groups are distinguished by more than the numbers of their rows.
    private var needsGroups: Bool { key == .family || key == .function }

    /// The sum that a bucket or report belongs to.
    mutating func index(dimension: Int, signature: Int64, host: String) throws -> Int {
        let row = key.isOfFunctions ? signature : Int64(dimension)
        if key != .host, let index = keys.index(ofRow: row) { return index }
        let index = keys.index(try rowKey(dimension, signature, host), row: row)
        if index == sums.count { sums.append(RollUpSum()) }
        return index
    }

    /// The group of a bucket or report, as the key of its row.
    private func rowKey(
        _ dimension: Int, _ signature: Int64, _ host: String
    ) throws -> RollUpKeys.Key {
        func group() throws -> ReportGroup {
            guard let group = groups[signature] else { throw noGroup }
            return group
        }
        return switch key {
        case .signature where isPart: .number(try group().signature)
        // No store adds up by all functions of a stack: its callers do not ask for it.
        case .signature, .inclusive: .number(special.first[signature] ?? signature)
        case .family: .number(try group().family)
        case .function: .name(try group().frames.first ?? "")
        case .cause: .name(dimensions[dimension].cause?.word ?? "")
        case .loop: .name(dimensions[dimension].loop)
        case .version:
            .version(app: dimensions[dimension].app, version: dimensions[dimension].version)
        case .host: .name(host)
        case .app: .name(dimensions[dimension].app)
        // Nor by what only process runs have.
        case .os, .device: .name("")
        }
    }

    private var noGroup: StoreError {
        .damaged(path: connection.path, detail: "a report of no group")
    }

    /// The groups that are listed, in the order of their first rows.
    func listed(_ largest: LargestGroups) throws -> [Int] {
        var indices = shownIndices
        if let signatures = largest.signatures {
            let rows = try SignatureRows.rows(connection, of: signatures)
            let named = groups.filter { signatures.contains($0.value.signature) }.keys
            let wanted = Set((rows + named).compactMap(keys.index(ofRow:)))
            indices = indices.filter(wanted.contains)
        }
        guard largest.count < indices.count else { return indices }
        let sizes = sums.map { $0.size(largest.order) }
        return indices.sorted { sizes[$0] > sizes[$1] }.prefix(largest.count).sorted()
    }

    /// All groups but those that are parts of others.
    var shownIndices: [Int] { sums.indices.filter { joins[$0] == nil } }

    mutating func makeAnswer(listing listed: [Int]) throws -> AggregateAnswer {
        let findID = try connection.prepare(Self.findID)
        var answer = AggregateAnswer()
        func names(_ dimensions: some Sequence<Int>, _ name: KeyPath<RollUpDimension, String>)
            -> [String]
        {
            Set(dimensions.map { self.dimensions[$0][keyPath: name] }).sorted()
        }
        let seen = dimensionTotals.indices.filter { dimensionTotals[$0].count > 0 }
        for dimension in seen {
            answer.counts[dimensions[dimension].verdict, default: 0].addSaturated(
                Int(dimensionTotals[dimension].count))
        }
        answer.apps = names(seen, \.app)
        answer.versions = names(seen, \.version)
        answer.loops = names(seen, \.loop)
        answer.first = seen.map { dimensionTotals[$0].first_us }.min().map(
            UnixTime.init(microseconds:))
        answer.last = seen.map { dimensionTotals[$0].last_us }.max().map(
            UnixTime.init(microseconds:))
        answer.groupCount = sums.count - joins.count
        answer.watched = watched
        let ranked = seen.filter { isRanked(dimensions[$0].verdict) }
        answer.builds = Set(ranked.map { "\(dimensions[$0].app) \(dimensions[$0].version)" })
            .sorted()
        answer.firstRanked = ranked.map { dimensionTotals[$0].first_us }.min()
            .map(UnixTime.init(microseconds:))
        answer.lastRanked = ranked.map { dimensionTotals[$0].last_us }.max()
            .map(UnixTime.init(microseconds:))
        answer.total = lost
        answer.delayed = delayed
        // A group that is not made by functions needs none.
        let heaviest = listed.map {
            key.isOfFunctions ? sums[$0].heaviestSignatures(cut: special.cut) : []
        }
        let unread = Set(heaviest.joined()).subtracting(groups.keys)
        if !unread.isEmpty {
            try groups.merge(SignatureRows.groups(connection, Array(unread))) { known, _ in known }
        }
        for (index, signatures) in zip(listed, heaviest) {
            let sum = sums[index]
            guard sum.totals.count > 0 else { continue }
            let group = try group(heaviest: signatures, keys.names[index])
            var example: UniqueID?
            if question.withExamples {
                let foreign = foreignSources[sum.totals.maxSource]
                let find = try foreign?.connection.prepare(Self.findID) ?? findID
                try find.bind(foreign?.source ?? sum.totals.maxSource, sum.totals.maxSeq)
                example = try find.step() ? find.uniqueID() : nil
                find.reset()
            }
            var causes: [CauseClass: Duration] = [:]
            for (dimension, total) in sum.dimensions {
                guard let cause = dimensions[dimension].cause else { continue }
                causes[cause, default: .zero] += .nanoseconds(total)
            }
            answer.durations.merge(sum.totals.histogram)
            let quantiles = sum.quantiles([0.5, 0.95, 0.99])
            answer.groups.append(
                StallAggregate(
                    by: key, group, totals: sum.all,
                    watched: sum.watched, p50: quantiles[0], p95: quantiles[1],
                    p99: quantiles[2], causes: causes, apps: names(sum.dimensions.keys, \.app),
                    versions: names(sum.dimensions.keys, \.version),
                    loops: names(sum.dimensions.keys, \.loop),
                    first: UnixTime(microseconds: sum.totals.first_us),
                    last: UnixTime(microseconds: sum.totals.last_us), example: example,
                    days: sum.days))
        }
        return answer
    }

    private static let findID = "select id from report where source = ? and seq = ?"

    /// The group that a sum is of.
    ///
    /// - Parameters:
    ///   - heaviest: Those of its signatures that lost the most time.
    ///   - name: The group's name where it is not made by a function.
    private func group(heaviest: [Int64], _ name: String) throws -> ReportGroup {
        // Of these only the cause may be unknown; an app or a loop may have an empty name.
        guard key.isOfFunctions else {
            return ReportGroup(fact: key == .cause && name.isEmpty ? nil : name, of: key)
        }
        guard let group = heaviest.compactMap({ groups[$0] }).min(by: { $0.precedes($1) })
        else { throw noGroup }
        return group.grouped(by: key)
    }
}

/// The stalls of one dimension row, ranked or not.
struct DimensionTally {
    var count: Int64 = 0
    var first_us = Int64.max
    var last_us = Int64.min

    mutating func add(_ count: Int64, _ first: Int64, _ last: Int64) {
        self.count.addSaturated(count)
        first_us = min(first_us, first)
        last_us = max(last_us, last)
    }
}
