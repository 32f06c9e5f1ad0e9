// Answers what ranking asks, from as few rows as can be: cells of 32 days, cells of single days at the
// edges of the time that was asked for, and single reports for the parts of days that are left. An
// agent's store has no cells: its reports are read and grouped here.

internal import StallModel

/// One question for roll-ups, on one snapshot of a store.
struct RollUpQuery {
    let connection: Connection
    let filter: ReportFilter
    let dimension: RollUpDimension
    let withDays: Bool
    let largest: LargestGroups?
    private var cohorts = KnownCohorts()
    private var groups: [Int64: ReportGroup] = [:]
    private var keys = RollUpKeys()
    private var sums: [RollUpSum] = []
    /// The histograms of cells, one behind the other, and whose they are: only those of listed groups are read.
    private var histograms: [UInt8] = []
    private var histogramEnds: [(sum: Int, end: Int)] = []
    /// The whole days that cells of single days are yet to be read of, for the groups that are listed.
    private var daysToRead: Range<Int64>?
    private var counts: [StallVerdict: Int] = [:]
    private var seen: Set<Int> = []
    private var span: (first: Int64, last: Int64)?

    init(
        _ connection: Connection, filter: ReportFilter, dimension: RollUpDimension, withDays: Bool,
        largest: LargestGroups?
    ) {
        self.connection = connection
        self.filter = filter
        self.dimension = dimension
        self.withDays = withDays
        self.largest = largest
    }

    /// - Parameter grouper: For reports whose group is not stored.
    mutating func answer(_ grouper: any ReportGrouper) throws -> RollUpAnswer {
        let isGrouped = try connection.isGrouped
        if isGrouped, needsGroups { groups = try SignatureRows.groups(connection) }
        // Cells know nothing of hosts.
        if isGrouped && filter.hosts.isEmpty && dimension != .host {
            try addCells()
        } else {
            try addReports(from: filter.since, until: filter.until, isGrouped ? nil : grouper)
        }
        return try makeAnswer()
    }

    // MARK: Cells

    private mutating func addCells() throws {
        try cohorts.load(connection, filter)
        let day = Int64.microsecondsOfDay
        let since = filter.since?.microseconds
        let until = filter.until?.microseconds
        // The whole days in the time that was asked for.
        let first = since.map { $0.day * day == $0 ? $0.day : $0.day + 1 } ?? .min
        let end = until.map(\.day) ?? .max
        guard first < end else {
            return try addReports(from: filter.since, until: filter.until, nil)
        }
        if let since, since < first * day {
            try addReports(from: filter.since, until: UnixTime(microseconds: first * day), nil)
        }
        if let until, end * day < until {
            try addReports(from: UnixTime(microseconds: end * day), until: filter.until, nil)
        }
        let long = RollUpCell.longDays
        let firstLong =
            first == .min ? first : RollUpCell.longDay(first + long - 1)
        let endLong = end == .max ? end : RollUpCell.longDay(end)
        // Where few groups are listed, days are read of those alone, once it is known which they are.
        if withDays, largest != nil { daysToRead = first..<end }
        guard !daysComeWithCells, firstLong < endLong else {
            return try addCells(of: 1, first, end)
        }
        try addCells(of: 1, first, firstLong)
        try addCells(of: long, firstLong, endLong)
        try addCells(of: 1, endLong, end)
    }

    /// Adds the cells of so many days that begin at `first` or later and before `end`.
    private mutating func addCells(of dayCount: Int64, _ first: Int64, _ end: Int64) throws {
        guard first < end else { return }
        let rows = try connection.prepare(
            """
            select cohort, signature, first_day, \(RollUpRows.columns) from rollup
            where day_count = ? and first_day >= ? and first_day < ?
            """)
        try rows.bind(dayCount, first, end)
        while try rows.step() {
            guard let cohort = cohorts.index(ofRow: rows.integer(at: 0)) else { continue }
            note(cohort, Int(rows.integer(at: 3)), rows.integer(at: 10), rows.integer(at: 11))
            guard isRanked(cohorts[cohort].verdict) else { continue }
            let signature = rows.integer(at: 1)
            let index = try index(cohort: cohort, signature: signature, host: "")
            sums[index].totals.addWithoutHistogram(rows, at: 3)
            histograms.append(contentsOf: rows.blob(at: 12))
            histogramEnds.append((index, histograms.count))
            let total = rows.integer(at: 4)
            sums[index].note(total, cohort: cohort, signature: signature)
            if daysComeWithCells {
                sums[index].note(
                    day: rows.integer(at: 2), count: rows.integer(at: 3), total: total,
                    longest: rows.integer(at: 7))
            }
        }
    }

    private var daysComeWithCells: Bool { withDays && largest == nil }

    /// Adds the days of these sums.
    private mutating func addDays(of listed: Set<Int>) throws {
        guard let days = daysToRead else { return }
        let rows = try connection.prepare(
            """
            select cohort, signature, first_day, report_count, total_ns, max_ns from rollup
            where day_count = 1 and first_day >= ? and first_day < ?
            """)
        try rows.bind(days.lowerBound, days.upperBound)
        while try rows.step() {
            guard let cohort = cohorts.index(ofRow: rows.integer(at: 0)),
                isRanked(cohorts[cohort].verdict)
            else { continue }
            let index = try index(cohort: cohort, signature: rows.integer(at: 1), host: "")
            guard listed.contains(index) else { continue }
            sums[index].note(
                day: rows.integer(at: 2), count: rows.integer(at: 3), total: rows.integer(at: 4),
                longest: rows.integer(at: 5))
        }
    }

    // MARK: Reports

    /// - Parameter grouper: Nil where the groups are stored.
    private mutating func addReports(
        from since: UnixTime?, until: UnixTime?, _ grouper: (any ReportGrouper)?
    ) throws {
        let loops = try LoopFacts.all(connection, filter)
        var registry: [Int64: Int64] = [:]
        var decided: [ReportGroup] = []
        let decider = try grouper.map { grouper in
            try GroupDecider(connection, grouper) { group in
                if let known = registry[group.signature] { return known }
                decided.append(group)
                registry[group.signature] = Int64(decided.count)
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
            """)
        try rows.bind(start, end)
        while try rows.step() {
            var report = try CountedReport(rows, at: 0)
            guard let loop = loops[report.loop] else { continue }
            let cohort = cohorts.index(
                of: Cohort(
                    app: loop.app, version: loop.version, buildID: loop.buildID, loop: loop.name,
                    verdict: report.verdict, cause: report.cause))
            guard filter.verdicts?.contains(report.verdict) ?? true,
                filter.allows(cause: report.cause)
            else { continue }
            note(cohort, 1, report.entry.start_us, report.entry.start_us)
            guard isRanked(report.verdict) else { continue }
            if let decider {
                let decision = try decider.decide(
                    rows.samples(at: 9, in: report.entry.duration_ns), cause: report.cause,
                    executable: loop.buildID)
                report.signature = decision.signature
                if groups[decision.signature] == nil {
                    groups[decision.signature] = decided[Int(decision.signature) - 1]
                }
            }
            guard let signature = report.signature else { continue }
            let index = try index(cohort: cohort, signature: signature, host: loop.host)
            let total = report.entry.duration_ns
            sums[index].totals.add(report.entry)
            sums[index].durations.append(total)
            sums[index].note(total, cohort: cohort, signature: signature)
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

    private mutating func note(_ cohort: Int, _ count: Int, _ first: Int64, _ last: Int64) {
        counts[cohorts[cohort].verdict, default: 0] += count
        seen.insert(cohort)
        span = (min(span?.first ?? first, first), max(span?.last ?? last, last))
    }

    /// Whether groups are told apart by more than the numbers of their rows.
    private var needsGroups: Bool { dimension == .family || dimension == .function }

    /// The sum that a cell or report belongs to.
    private mutating func index(cohort: Int, signature: Int64, host: String) throws -> Int {
        let group = groups[signature]
        if needsGroups, group == nil { throw noGroup }
        let index = keys.index(
            dimension, signature: signature, group: group, cohort: cohorts[cohort], host: host)
        if index == sums.count { sums.append(RollUpSum()) }
        return index
    }

    private var noGroup: StoreError {
        .damaged(path: connection.path, detail: "a report of no group")
    }

    /// The groups that are listed, in the order of their first rows.
    private var listed: [Int] {
        guard let largest, largest.count < sums.count else { return Array(sums.indices) }
        let sizes = sums.map { $0.size(largest.order) }
        return sums.indices.sorted { (sizes[$1], $0) < (sizes[$0], $1) }.prefix(largest.count)
            .sorted()
    }

    private mutating func readHistograms(of listed: Set<Int>) throws {
        var begin = 0
        for (sum, end) in histogramEnds {
            defer { begin = end }
            guard listed.contains(sum) else { continue }
            let isWhole = histograms[begin..<end].withUnsafeBytes {
                sums[sum].totals.histogram.add(encoded: $0)
            }
            guard isWhole else {
                throw StoreError.damaged(
                    path: connection.path, detail: "a roll-up's histogram is not one")
            }
        }
        histogramEnds = []
    }

    private mutating func makeAnswer() throws -> RollUpAnswer {
        let findID = try connection.prepare("select id from report where source = ? and seq = ?")
        var answer = RollUpAnswer(counts: counts)
        func names(_ cohorts: some Sequence<Int>, _ name: KeyPath<Cohort, String>) -> [String] {
            Set(cohorts.map { self.cohorts[$0][keyPath: name] }).sorted()
        }
        answer.apps = names(seen, \.app)
        answer.versions = names(seen, \.version)
        answer.loops = names(seen, \.loop)
        answer.first = span.map { UnixTime(microseconds: $0.first) }
        answer.last = span.map { UnixTime(microseconds: $0.last) }
        answer.groupCount = sums.count
        answer.total = sums.reduce(.zero) { $0 + .nanoseconds($1.totals.total_ns) }
        let listed = listed
        try readHistograms(of: Set(listed))
        try addDays(of: Set(listed))
        let heaviest = listed.map { sums[$0].heaviestSignature }
        let unread = Set(heaviest.compactMap(\.self)).subtracting(groups.keys)
        if !unread.isEmpty {
            try groups.merge(SignatureRows.groups(connection, unread)) { known, _ in known }
        }
        for (index, signature) in zip(listed, heaviest) {
            let sum = sums[index]
            guard let signature else { continue }
            guard let group = groups[signature] else { throw noGroup }
            try findID.bind(sum.totals.maxSource, sum.totals.maxSeq)
            let example = try findID.step() ? findID.uniqueID(at: 0) : nil
            findID.reset()
            var causes: [CauseClass: Duration] = [:]
            for (cohort, total) in sum.cohorts {
                guard let cause = cohorts[cohort].cause else { continue }
                causes[cause, default: .zero] += .nanoseconds(total)
            }
            answer.durations.merge(sum.totals.histogram)
            let quantiles = sum.quantiles([0.5, 0.95, 0.99])
            answer.groups.append(
                RollUp(
                    name: keys.names[index], group: group, count: Int(sum.totals.count),
                    total: .nanoseconds(sum.totals.total_ns),
                    cpuTime: .nanoseconds(sum.totals.cpu_ns), min: .nanoseconds(sum.totals.min_ns),
                    max: .nanoseconds(sum.totals.max_ns), p50: quantiles[0], p95: quantiles[1],
                    p99: quantiles[2], squares: sum.squares,
                    first: UnixTime(microseconds: sum.totals.first_us),
                    last: UnixTime(microseconds: sum.totals.last_us), example: example,
                    apps: names(sum.cohorts.keys, \.app),
                    versions: names(sum.cohorts.keys, \.version),
                    loops: names(sum.cohorts.keys, \.loop), causes: causes,
                    days: sum.days))
        }
        return answer
    }
}
