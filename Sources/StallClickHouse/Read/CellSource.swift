// Totals of stalls as a cluster adds them up: from the roll-ups of days that have them, and from the reports of the others.

internal import StallModel
internal import StallQuery
internal import StallStore

/// The key that buckets are added up by.
struct CellKey: Hashable {
    var app = "", version = "", loop = ""
    var verdict: UInt8 = 0
    /// -1 where none was decided.
    var cause: Int8 = -1
    var isWatched = false
    /// The key of a signature; 0 where buckets are not by groups.
    var signature: Int64 = 0
    /// Empty where buckets are not by hosts.
    var host = ""
    /// 0 where buckets are not by days.
    var day: Int64 = 0
}

/// The totals of one bucket.
struct Cell {
    var count: Int64 = 0
    var total_ns: Int64 = 0
    /// The part of it that was not the threads' own.
    var delayed_ns: Int64 = 0
    var min_ns = Int64.max
    var max_ns = Int64.min
    /// The longest, and the day that it began on.
    var longest: (id: UniqueID, day: Int64)?
    var first_us = Int64.max
    var last_us = Int64.min
    var histogram = DurationHistogram()

    mutating func add(_ other: Cell) {
        count = count.addingSaturated(other.count)
        total_ns = total_ns.addingSaturated(other.total_ns)
        delayed_ns = delayed_ns.addingSaturated(other.delayed_ns)
        min_ns = min(min_ns, other.min_ns)
        if other.isLonger(than: self) { (max_ns, longest) = (other.max_ns, other.longest) }
        first_us = min(first_us, other.first_us)
        last_us = max(last_us, other.last_us)
        histogram.merge(other.histogram)
    }

    /// Of reports that lasted as long, the one with the greatest id counts as the longest, as the cluster has it.
    private func isLonger(than other: Cell) -> Bool {
        guard max_ns == other.max_ns, let longest, let known = other.longest else {
            return max_ns > other.max_ns
        }
        return known.id.words < longest.id.words
    }
}

/// The dimension of buckets besides builds, loops, verdicts and causes.
enum CellAxis: CaseIterable {
    case signature, host, none

    /// The table of such buckets, over all shards; each shard's has `_local` behind its name.
    var table: ClickHouseQuery {
        switch self {
        case .signature: "rollup"
        case .host: "host_rollup"
        case .none: "cohort_rollup"
        }
    }

    var column: ClickHouseQuery? {
        switch self {
        case .signature: "signature"
        case .host: "host"
        case .none: nil
        }
    }
}

/// Reads buckets.
struct CellSource {
    let server: ClickHouseServer
    let days: KnownDays
    var filter: ReportFilter
    /// Buckets have the day.
    var isDaily = false
    /// Buckets have the verdict, and nothing else of builds, loops and causes.
    var isCoarse = false
    var axis = CellAxis.signature
    /// Only these groups; nil for all.
    var signatures: [Int64]?
    /// The whole days that are asked for.
    var range: Range<Int64>
    /// Reports of the parts of days before and behind them are in buckets as well.
    var hasEnds = false

    init(
        _ server: ClickHouseServer, _ days: KnownDays, _ filter: ReportFilter,
        _ range: Range<Int64>
    ) {
        (self.server, self.days, self.filter, self.range) = (server, days, filter, range)
    }

    /// The buckets, without their histograms.
    func cells() throws -> [CellKey: Cell] {
        var cells: [CellKey: Cell] = [:]
        for question in questions {
            var rows = try server.rows(question, columnCount: 17)
            while try rows.step() {
                var key = CellKey(
                    app: try rows.text(), version: try rows.text(),
                    loop: try rows.text(), verdict: try rows.integer(),
                    cause: try rows.integer(),
                    isWatched: try rows.integer(as: UInt8.self) != 0)
                switch axis {
                case .signature: key.signature = try rows.integer()
                case .host: key.host = try rows.text()
                case .none: _ = rows.next()
                }
                key.day = try rows.day()
                var cell = Cell()
                cell.count = try rows.integer()
                cell.total_ns = try rows.integer()
                cell.min_ns = try rows.integer()
                cell.max_ns = try rows.integer()
                cell.longest = (try rows.uniqueID(), try rows.day())
                cell.first_us = try rows.integer()
                cell.last_us = try rows.integer()
                cell.delayed_ns = try rows.integer()
                cells[key, default: Cell()].add(cell)
            }
        }
        return cells
    }

    /// The queries of `cells`: for roll-ups, and for reports where there have to be.
    var questions: [ClickHouseQuery] {
        func question(
            _ table: ClickHouseQuery, _ measures: ClickHouseQuery
        ) -> ClickHouseQuery {
            let dimensions: ClickHouseQuery =
                isCoarse
                ? "'' as a, '' as b, '' as l, verdict as v, -1 as c, 0 as w"
                : """
                app as a, version as b, loop_name as l, verdict as v, cause as c,
                    \(watched(table)) as w
                """
            return """
                select \(dimensions), \(axisColumn) as axis, \(dayColumn) as cell_day, \(measures)
                from \(table) group by a, b, l, v, c, w, axis, cell_day
                """
        }
        let rolledUp = question(
            rolledUp,
            """
            sum(report_count), \(sum: "total_ns"), min(min_ns),
            tupleElement(max(tuple(max_ns, max_id, day)) as longest, 1), tupleElement(longest, 2),
            tupleElement(longest, 3), min(first_us), max(last_us), \(sum: "delayed_ns")
            """)
        guard let reports else { return [rolledUp] }
        let ofReports = question(
            reports,
            """
            count(), \(sum: "duration_ns"), min(duration_ns),
            tupleElement(max(tuple(duration_ns, id, day)) as longest, 1), tupleElement(longest, 2),
            tupleElement(longest, 3), min(start_us), max(start_us), \(sum: "delayed_ns")
            """)
        return [rolledUp, ofReports]
    }

    /// The durations of the buckets' stalls, by axis, by whether their loops are watched, and by day where buckets are.
    /// Readers do not need the other dimensions, and histograms are most of a bucket's bytes.
    ///
    /// - Parameter dimensions: More of them, where groups are made by these.
    func histograms(by dimensions: ClickHouseQuery = "''") throws -> [HistogramKey:
        DurationHistogram]
    {
        var histograms: [HistogramKey: DurationHistogram] = [:]
        func key(_ rows: TabSeparatedRows) throws -> HistogramKey {
            var key = HistogramKey(isWatched: try rows.integer(as: UInt8.self) != 0)
            switch axis {
            case .signature: key.signature = try rows.integer()
            case .host: key.host = try rows.text()
            case .none: _ = rows.next()
            }
            key.day = try rows.day()
            key.dimension = try rows.text()
            return key
        }
        var rows = try server.rows(histogramQuestion(by: dimensions), columnCount: 6)
        while try rows.step() {
            let place = try key(rows)
            let (buckets, counts) = (try rows.integers(), try rows.integers())
            guard buckets.count == counts.count else {
                throw rows.bad("as many counts as buckets")
            }
            var histogram = DurationHistogram()
            for (bucket, count) in zip(buckets, counts) {
                guard 0...Int64(DurationHistogram.lastBucket) ~= bucket else {
                    throw rows.bad(4, "buckets of a histogram")
                }
                histogram.add(bucket: Int(bucket), count: count)
            }
            histograms[place, default: DurationHistogram()].merge(histogram)
        }
        guard let reports else { return histograms }
        rows = try server.rows(
            """
            select \(watched(reports)) as watched, \(axisColumn) as axis, \(dayColumn) as cell_day,
                \(dimensions) as dimension, bucket, count()
            from \(reports) and verdict in \(list: rankedVerdicts)
            group by watched, axis, cell_day, dimension, bucket
            """, columnCount: 6)
        while try rows.step() {
            let place = try key(rows)
            let bucket = try rows.integer(as: UInt16.self)
            guard Int(bucket) <= DurationHistogram.lastBucket else {
                throw rows.bad("a bucket of a histogram")
            }
            try histograms[place, default: DurationHistogram()].add(
                bucket: Int(bucket), count: rows.integer())
        }
        return histograms
    }

    /// The query of `histograms` for roll-ups.
    func histogramQuestion(by dimensions: ClickHouseQuery) -> ClickHouseQuery {
        """
        select watched, axis, cell_day, dimension, tupleElement(sums, 1), tupleElement(sums, 2)
        from (select \(watched(rolledUp)) as watched, \(axisColumn) as axis,
            \(dayColumn) as cell_day, \(dimensions) as dimension, sumMap(bucket, bucket_count) as sums
            from \(rolledUp) and verdict in \(list: rankedVerdicts)
            group by watched, axis, cell_day, dimension)
        """
    }

    struct HistogramKey: Hashable {
        var isWatched: Bool
        var signature: Int64 = 0
        var host = ""
        var day: Int64 = 0
        var dimension = ""
    }

    // MARK: Parts of statements

    /// The verdicts that are ranked.
    var rankedVerdicts: [UInt8] {
        (filter.verdicts ?? [.stalled]).map(\.rawValue).sorted()
    }

    private var axisColumn: ClickHouseQuery { axis.column ?? "0" }

    private var dayColumn: ClickHouseQuery { isDaily ? "day" : "0" }

    /// Whether the loop of a row recorded its watched time.
    private func watched(_ table: ClickHouseQuery) -> ClickHouseQuery {
        table == rolledUp
            ? "is_watched" : server.isOfWatchedLoop
    }

    /// The table and conditions of days that have roll-ups.
    var rolledUp: ClickHouseQuery {
        var conditions = ReportConditions(filter, hasHost: axis == .host, hasTime: false)
        conditions.add(days: range)
        let days = server.table("rollup_day")
        conditions.add(
            "(day, generation) in (select day, generation from \(days) final where is_fresh = 1)")
        if let signatures { conditions.add("signature in \(list: signatures)") }
        return "\(axis.table) where \(conditions.sql)"
    }

    /// The table and conditions of the others; nil without any.
    var reports: ClickHouseQuery? {
        let stale = days.stale.filter(range.contains)
        guard hasEnds || !stale.isEmpty else { return nil }
        var conditions = ReportConditions(filter, hasTime: hasEnds)
        if hasEnds {
            conditions.add(outside: range, or: stale)
        } else {
            conditions.add(ofKey: "day in \(list: stale)")
        }
        if let signatures { conditions.add("signature in \(list: signatures)") }
        conditions.add("signature != 0")
        return conditions.reports(server)
    }
}

extension ClickHouseServer {
    /// Of a report: whether its loop recorded how long it was watched.
    var isOfWatchedLoop: ClickHouseQuery {
        "(source, loop) in (select source, loop from \(table("watched_loop")))"
    }
}
