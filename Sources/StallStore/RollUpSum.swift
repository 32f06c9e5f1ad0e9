// What a question for roll-ups adds up, and by what.

internal import StallModel

/// One group of the answer.
struct RollUpSum {
    var totals = RollUpTotals()
    /// What the group is ordered by, where the rest is only read of groups that are listed.
    private(set) var size: Int64 = 0
    /// Of reports that were read one by one: where all were, quantiles are exact.
    var durations: [Int64] = []
    /// The nanoseconds by cohort, by signature and by day.
    private(set) var cohorts: [Int: Int64] = [:]
    private var signatures: [Int64: Int64] = [:]
    private(set) var days: [Int: RollUp.Day] = [:]

    /// Counts so many stalls for a day.
    mutating func note(day: Int64, count: Int64, total: Int64, longest: Int64) {
        var sum = days[Int(day)] ?? RollUp.Day()
        sum.count += Int(count)
        sum.total += .nanoseconds(total)
        sum.longest = max(sum.longest, .nanoseconds(longest))
        days[Int(day)] = sum
    }

    mutating func note(_ total: Int64, cohort: Int, signature: Int64) {
        cohorts[cohort, default: 0] &+= total
        signatures[signature, default: 0] &+= total
    }

    mutating func noteSize(
        _ order: LargestGroups.Order, count: Int64, total: Int64, longest: Int64
    ) {
        switch order {
        case .total: size &+= total
        case .count: size += count
        case .max: size = max(size, longest)
        }
    }

    /// The signature that lost the most time; of several the one that was first in the store.
    var heaviestSignature: Int64? {
        signatures.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key
    }

    /// The sum of the squares of the durations, in seconds.
    var squares: Double {
        if durations.count == Int(totals.count) {
            return durations.sorted().reduce(0) { $0 + (Double($1) / 1e9) * (Double($1) / 1e9) }
        }
        return totals.histogram.squares
    }

    /// The durations that these parts of all lasted at most.
    func quantiles(_ parts: [Double]) -> [Duration] {
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
    /// Adds a row's totals, with the columns of `RollUpRows.columns`.
    mutating func add(_ row: Statement, at first: CInt) throws(StoreError) {
        count += row.integer(at: first)
        total_ns &+= row.integer(at: first + 1)
        cpu_ns &+= row.integer(at: first + 2)
        min_ns = min(min_ns, row.integer(at: first + 3))
        noteLongest(
            row.integer(at: first + 4), row.integer(at: first + 5), row.integer(at: first + 6))
        first_us = min(first_us, row.integer(at: first + 7))
        last_us = max(last_us, row.integer(at: first + 8))
        guard histogram.add(encoded: row.blob(at: first + 9)) else {
            throw row.damage("a roll-up's histogram is not one")
        }
    }
}

/// Numbers the groups of an answer.
struct RollUpKeys {
    /// What makes one group.
    enum Key: Hashable {
        case number(Int64), name(String)
    }

    /// What makes each group where no function does.
    private(set) var names: [String] = []
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
            if case .name(let name) = key { names.append(name) } else { names.append("") }
        }
        return index
    }
}

extension RollUpDimension {
    /// Whether the signature alone tells the group.
    var isOfFunctions: Bool {
        switch self {
        case .signature, .family, .function: true
        case .cause, .loop, .version, .host, .app: false
        }
    }
}

/// The cohorts that a filter selects: those with rows, and those of reports that are read one by
/// one.
struct KnownCohorts {
    private var all: [Cohort] = []
    private var rows: [Int64: Int] = [:]
    private var indexes: [Cohort: Int] = [:]
    private var selectsAll = true

    subscript(index: Int) -> Cohort { all[index] }

    mutating func load(_ connection: Connection, _ filter: ReportFilter) throws {
        let rows = try connection.prepare("select \(Cohort.columns), id from cohort")
        while try rows.step() {
            let cohort = try Cohort(rows, at: 0)
            let isWanted =
                filter.allows(app: cohort.app, version: cohort.version, loop: cohort.loop)
                && filter.verdicts?.contains(cohort.verdict) ?? true
                && filter.allows(cause: cohort.cause)
            if isWanted {
                self.rows[rows.integer(at: 6)] = index(of: cohort)
            } else {
                selectsAll = false
            }
        }
    }

    /// The rows that the filter selects; nil for all.
    var selectedRows: [Int64]? { selectsAll ? nil : Array(rows.keys) }

    /// The cohort of a row; nil when the filter does not select it.
    func index(ofRow row: Int64) -> Int? { rows[row] }

    mutating func index(of cohort: Cohort) -> Int {
        if let index = indexes[cohort] { return index }
        all.append(cohort)
        indexes[cohort] = all.count - 1
        return all.count - 1
    }
}

/// What a loop's row leads to.
struct LoopFacts {
    var app: String
    var version: String
    var buildID: BuildID?
    var name: String
    var host: String

    /// The loops that a filter selects, by the numbers of their rows.
    static func all(
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
            let loop = LoopFacts(
                app: rows.text(at: 1), version: rows.text(at: 2),
                buildID: rows.optionalBytes(at: 3).map(BuildID.init), name: rows.text(at: 4),
                host: rows.text(at: 5))
            let isWanted =
                filter.allows(app: loop.app, version: loop.version, loop: loop.name)
                && (filter.hosts.isEmpty || filter.hosts.contains(loop.host))
            if isWanted { loops[rows.integer(at: 0)] = loop }
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
