// The sums of a question for roll-ups, by its key.

package import StallModel
package import StallQuery
package import StallStore

/// One group of the answer.
struct RollUpSum {
    var totals = RollUpTotals()
    /// The part of loops whose watched time is recorded, and how many stalls are not of it. Of buckets the part is only
    /// added up where there are stalls of both kinds.
    private var watchedPart = StallTotals()
    private var unwatchedCount: Int64 = 0
    /// A stack of it was whole.
    private(set) var isWhole = false
    /// The number that groups are ordered by, and the time lost, whose own part orders those that are equal: known of
    /// all groups where the rest is only read of listed ones.
    private var size: Int64 = 0
    private var lost_ns: Int64 = 0
    private var delayed_ns: Int64 = 0
    private var isOrderedByLongest = false
    /// Of reports that were read one by one: where all were, quantiles are exact.
    var durations: [Int64] = []
    /// The nanoseconds by dimension row, by signature and by day.
    private(set) var dimensions: [Int: Int64] = [:]
    private var signatures: [Int64: Int64] = [:]
    private(set) var days: [Int: StallTotals] = [:]

    /// Counts this number of stalls for a day.
    mutating func note(day: Int64, count: Int64, total: Int64, longest: Int64) {
        var sum = days[Int(day)] ?? StallTotals()
        sum.count.addSaturated(Int(count))
        sum.total += .nanoseconds(total)
        sum.longest = max(sum.longest, .nanoseconds(longest))
        days[Int(day)] = sum
    }

    mutating func note(_ total: Int64, dimension: Int, signature: Int64) {
        dimensions[dimension] = (dimensions[dimension] ?? 0).addingSaturated(total)
        signatures[signature] = (signatures[signature] ?? 0).addingSaturated(total)
    }

    mutating func noteWhole() { isWhole = true }

    /// Notes one report.
    mutating func note(_ report: RollUpEntry, isWatched: Bool) {
        if isWatched {
            watchedPart.add(
                .nanoseconds(report.duration_ns), delayed: .nanoseconds(report.delayed_ns))
        } else {
            unwatchedCount += 1
        }
    }

    mutating func noteUnwatched(_ count: Int64) {
        unwatchedCount = unwatchedCount.addingSaturated(count)
    }

    /// Notes the stalls of a bucket that was added.
    mutating func note(_ cell: RollUpTotals, isWatched: Bool) {
        guard isWatched else { return noteUnwatched(cell.count) }
        var part = StallTotals()
        part.count = Int(cell.count)
        part.total = .nanoseconds(cell.total_ns)
        part.delayed = .nanoseconds(cell.delayed_ns)
        part.longest = .nanoseconds(cell.max_ns)
        part.squares = cell.histogram.squares
        watchedPart.add(part)
    }

    /// Of loops whose watched time is recorded.
    var watched: StallTotals { unwatchedCount == 0 ? all : watchedPart }

    /// All stalls of the group.
    var all: StallTotals {
        var all = StallTotals()
        all.count = Int(totals.count)
        all.total = .nanoseconds(totals.total_ns)
        all.delayed = .nanoseconds(totals.delayed_ns)
        all.longest = .nanoseconds(max(0, totals.max_ns))
        all.squares = squares
        return all
    }

    /// Gives dimensions and signatures the numbers that they have in another answer.
    mutating func renumber(dimensions places: [Int], signatures rows: [Int64: Int64]) {
        dimensions = Dictionary(dimensions.map { (places[$0.key], $0.value) }) {
            $0.addingSaturated($1)
        }
        signatures = Dictionary(signatures.map { (rows[$0.key] ?? $0.key, $0.value) }) {
            $0.addingSaturated($1)
        }
    }

    /// Adds another group that is a part of this one.
    mutating func add(_ other: RollUpSum) {
        totals.add(other.totals)
        watchedPart.add(other.watchedPart)
        noteUnwatched(other.unwatchedCount)
        isWhole = isWhole || other.isWhole
        durations += other.durations
        dimensions.merge(other.dimensions) { $0.addingSaturated($1) }
        signatures.merge(other.signatures) { $0.addingSaturated($1) }
        for (day, sum) in other.days { days[day, default: StallTotals()].add(sum) }
        addSize(of: other)
    }

    /// Adds the number that another group is ordered by.
    mutating func addSize(of other: RollUpSum) {
        size = isOrderedByLongest ? max(size, other.size) : size.addingSaturated(other.size)
        lost_ns.addSaturated(other.lost_ns)
        delayed_ns.addSaturated(other.delayed_ns)
    }

    /// The time lost, where it was noted for the order.
    var lost: Duration { .nanoseconds(lost_ns) }

    mutating func noteSize(
        _ order: RankingOrder, count: Int64, total: Int64, delayed: Int64, longest: Int64,
        isWatched: Bool
    ) {
        lost_ns = lost_ns.addingSaturated(total)
        delayed_ns.addSaturated(delayed)
        switch order {
        case .total: break
        case .rate: size = size.addingSaturated(isWatched ? total : 0)
        case .count: size = size.addingSaturated(count)
        case .max:
            size = max(size, longest)
            isOrderedByLongest = true
        case .p95: break  // Needs all of its durations.
        }
    }

    func size(_ order: RankingOrder) -> (Int64, Int64) {
        (order == .p95 ? quantiles([0.95])[0].nanoseconds : size, max(0, lost_ns) - delayed_ns)
    }

    /// The rows of the signatures that lost the most time; of a group with whole stacks, not those that were cut.
    func heaviestSignatures(cut: [Int64: Int64]) -> [Int64] {
        let candidates = signatures.filter { !isWhole || cut[$0.key] == nil }
        let most = candidates.values.max()
        return candidates.filter { $0.value == most }.map(\.key)
    }

    /// The sum of the squares of the durations, in seconds.
    var squares: Double {
        if durations.count == Int(totals.count) {
            return durations.sorted().reduce(0) { $0 + (Double($1) / 1e9) * (Double($1) / 1e9) }
        }
        return totals.histogram.squares
    }

    /// The durations that these parts of all lasted at most; zero where there are none.
    func quantiles(_ parts: [Double]) -> [Duration] {
        guard totals.count > 0 else { return parts.map { _ in .zero } }
        if durations.count == Int(totals.count) {
            let sorted = durations.sorted()
            return parts.map { part in
                let index = Int((part * Double(sorted.count)).rounded(.up)) - 1
                return .nanoseconds(sorted[min(max(index, 0), sorted.count - 1)])
            }
        }
        let bounds = (Duration.nanoseconds(totals.min_ns), Duration.nanoseconds(totals.max_ns))
        return parts.map { min(max(totals.histogram.quantile($0), bounds.0), bounds.1) }
    }
}

extension RollUpTotals {
    /// The columns that `add(_:at:)` reads, in its order.
    package static let columns = """
        report_count, total_ns, cpu_ns, min_ns, max_ns, max_source, max_seq, first_us, last_us,
        histogram, delayed_ns
        """

    /// Adds a row's totals.
    package mutating func add(_ row: Statement, at first: CInt) throws(StoreError) {
        row.go(to: first)
        count.addSaturated(try row.count())
        let total = try row.integer()
        total_ns = total_ns.addingSaturated(total)
        cpu_ns = cpu_ns.addingSaturated(try row.integer())
        min_ns = min(min_ns, try row.integer())
        noteLongest(try row.integer(), try row.integer(), try row.integer())
        first_us = min(first_us, try row.time_us())
        last_us = max(last_us, try row.time_us())
        guard histogram.add(encoded: row.blob()) else {
            throw row.damage("a roll-up's histogram is invalid")
        }
        delayed_ns.addSaturated(try row.delayed_ns(ofTotal: total))
    }
}

extension Statement {
    /// The part of a roll-up's total that was not the threads' own. Totals that older programs wrote may have wrapped.
    func delayed_ns(at column: CInt? = nil, ofTotal total_ns: Int64) throws(StoreError) -> Int64 {
        try delayed_ns(at: column, in: max(0, total_ns))
    }
}

/// Numbers the groups of an answer.
struct RollUpKeys {
    /// The key of one group.
    enum Key: Hashable {
        case number(Int64), name(String), version(app: String, version: String)
    }

    /// The names of groups that are not made by functions.
    private(set) var names: [String] = []
    /// A row that led to each group.
    private(set) var rows: [Int64] = []
    private var byKey: [Key: Int] = [:]
    /// By the number of the signature's row, or of whatever else decides the key.
    private var byRow: [Int64: Int] = [:]

    func index(ofRow row: Int64) -> Int? { byRow[row] }

    /// The rows of the groups that meet a condition.
    func rows(where isWanted: (Int) -> Bool) -> [Int64] {
        byRow.filter { isWanted($0.value) }.map(\.key)
    }

    mutating func index(_ key: Key, row: Int64) -> Int {
        let index = byKey[key] ?? names.count
        byRow[row] = index
        if index == names.count {
            byKey[key] = index
            rows.append(row)
            switch key {
            case .number: names.append("")
            case .name(let name): names.append(name)
            case .version(let app, let version): names.append("\(app) \(version)")
            }
        }
        return index
    }

    /// Rows of a group that is a part of another one count there from now on.
    mutating func redirect(_ joins: [Int: Int]) {
        byRow = byRow.mapValues { joins[$0] ?? $0 }
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

/// The dimension rows that a filter selects: those with rows, and those of reports that are read one by
/// one.
struct KnownDimensions {
    private(set) var all: [RollUpDimension] = []
    private var rows: [Int64: Int] = [:]
    private var indexes: [RollUpDimension: Int] = [:]
    private var selectsAll = true

    subscript(index: Int) -> RollUpDimension { all[index] }

    /// Of some loops it is recorded how long they were watched, and of others not.
    var areMixed: Bool {
        all.contains(where: \.isWatched) && !all.allSatisfy(\.isWatched)
    }

    mutating func load(_ connection: Connection, _ filter: ReportFilter) throws {
        let rows = try connection.prepare("select \(RollUpDimension.columns), id from cohort")
        while try rows.step() {
            let (dimension, row) = (try RollUpDimension(rows), try rows.integer())
            let isWanted =
                filter.allows(app: dimension.app, version: dimension.version, loop: dimension.loop)
                && filter.verdicts?.contains(dimension.verdict) ?? true
                && filter.allows(cause: dimension.cause)
            if isWanted {
                self.rows[row] = index(of: dimension)
            } else {
                selectsAll = false
            }
        }
    }

    /// The rows that the filter selects; nil for all.
    var selectedRows: [Int64]? { selectsAll ? nil : Array(rows.keys) }

    /// The dimensions of a row; nil when the filter does not select it.
    func index(ofRow row: Int64) -> Int? { rows[row] }

    mutating func index(of dimension: RollUpDimension) -> Int {
        if let index = indexes[dimension] { return index }
        all.append(dimension)
        indexes[dimension] = all.count - 1
        return all.count - 1
    }
}

/// The facts about a loop's row.
package struct LoopFacts {
    package var app: String
    package var version: String
    package var buildID: BuildID?
    package var name: String
    package var host: String

    /// The loops that a filter selects, by the numbers of their rows.
    package static func all(
        _ connection: Connection, _ filter: ReportFilter
    ) throws -> [Int64: LoopFacts] {
        let rows = try connection.prepare(
            """
            select loop.id, process_run.app, process_run.version, process_run.build_id, loop.name,
                process_run.host
            from loop join process_run on process_run.id = loop.run
            """)
        var loops: [Int64: LoopFacts] = [:]
        while try rows.step() {
            let id = try rows.integer()
            let loop = LoopFacts(
                app: rows.text(), version: rows.text(),
                buildID: rows.optionalBytes().map(BuildID.init), name: rows.text(),
                host: rows.text())
            let isWanted =
                filter.allows(app: loop.app, version: loop.version, loop: loop.name)
                && (filter.hosts.isEmpty || filter.hosts.contains(loop.host))
            if isWanted { loops[id] = loop }
        }
        return loops
    }
}

extension ReportFilter {
    fileprivate func allows(app: String, version: String, loop: String) -> Bool {
        (apps.isEmpty || apps.contains(app)) && (versions.isEmpty || versions.contains(version))
            && (loops.isEmpty || loops.contains(loop))
    }
}
