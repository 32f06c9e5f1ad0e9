// What a question for roll-ups adds up, and by what.

internal import StallModel

/// One group of the answer.
struct RollUpSum {
    var totals = RollUpTotals()
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

    /// What the group is ordered by.
    func size(_ order: LargestGroups.Order) -> Int64 {
        switch order {
        case .total: totals.total_ns
        case .count: totals.count
        case .max: totals.max_ns
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
        addWithoutHistogram(row, at: first)
        guard histogram.add(encoded: row.blob(at: first + 9)) else {
            throw row.damage("a roll-up's histogram is not one")
        }
    }

    mutating func addWithoutHistogram(_ row: Statement, at first: CInt) {
        count += row.integer(at: first)
        total_ns &+= row.integer(at: first + 1)
        cpu_ns &+= row.integer(at: first + 2)
        min_ns = min(min_ns, row.integer(at: first + 3))
        noteLongest(
            row.integer(at: first + 4), row.integer(at: first + 5), row.integer(at: first + 6))
        first_us = min(first_us, row.integer(at: first + 7))
        last_us = max(last_us, row.integer(at: first + 8))
    }
}

/// Numbers the groups of an answer.
struct RollUpKeys {
    /// What makes each group where no function does.
    private(set) var names: [String] = []
    private var byNumber: [Int64: Int] = [:]
    private var byName: [String: Int] = [:]

    mutating func index(
        _ dimension: RollUpDimension, signature: Int64, group: ReportGroup?, cohort: Cohort,
        host: String
    ) -> Int {
        switch dimension {
        case .signature: index(number: signature)
        case .family: index(number: group?.family ?? 0)
        case .function: index(name: group?.frames.first ?? "")
        case .cause: index(name: cohort.cause?.word ?? "")
        case .loop: index(name: cohort.loop)
        case .version: index(name: cohort.version)
        case .host: index(name: host)
        case .app: index(name: cohort.app)
        }
    }

    private mutating func index(number: Int64) -> Int {
        if let index = byNumber[number] { return index }
        byNumber[number] = names.count
        names.append("")
        return names.count - 1
    }

    private mutating func index(name: String) -> Int {
        if let index = byName[name] { return index }
        byName[name] = names.count
        names.append(name)
        return names.count - 1
    }
}

/// The cohorts that a filter selects: those with rows, and those of reports that are read one by
/// one.
struct KnownCohorts {
    private var all: [Cohort] = []
    private var rows: [Int64: Int] = [:]
    private var indexes: [Cohort: Int] = [:]

    subscript(index: Int) -> Cohort { all[index] }

    mutating func load(_ connection: Connection, _ filter: ReportFilter) throws {
        let rows = try connection.prepare("select \(Cohort.columns), id from cohort")
        while try rows.step() {
            let cohort = try Cohort(rows, at: 0)
            let isWanted =
                filter.allows(app: cohort.app, version: cohort.version, loop: cohort.loop)
                && filter.verdicts?.contains(cohort.verdict) ?? true
                && filter.allows(cause: cohort.cause)
            if isWanted { self.rows[rows.integer(at: 6)] = index(of: cohort) }
        }
    }

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
