// Several stores that answer as one: each collector of a fleet has some of its apps or hosts, and a question is for all of
// them. Roll-ups are sums, so that the sum of the parts is the answer of one store with all of their reports.

package import StallModel
package import StallQuery
internal import StallStore

/// Stores with different reports, queried together. Each is read in a snapshot of its own.
///
/// Questions that need each stack of each report are for one store.
package final class MergedStore: QueryableStore {
    let parts: [ReportStore]

    package var path: String { parts[0].path }
    package var role: StoreRole { parts[0].role }

    /// - Throws: The error of a store; also that two of them have reports of the same agent's store, which would count
    ///   twice.
    package init(paths: [String]) throws {
        precondition(paths.count > 1)
        parts = try paths.map { try ReportStore.open(path: $0) }
        var owners: [UniqueID: ReportStore] = [:]
        for part in parts {
            for source in try part.changeSources() {
                if let other = owners.updateValue(part, forKey: source.store) {
                    throw MergedStoreError.sharedSource(source.store, other.path, part.path)
                }
            }
        }
    }

    package func consistently<Answer>(_ body: () throws -> Answer) throws -> Answer {
        try parts.map { $0 as any QueryableStore }.consistently(body)
    }

    package func aggregates(
        _ question: AggregateQuestion, grouper: any ReportGrouper
    ) throws -> AggregateAnswer {
        try snapshots { connections in
            try RollUpQuery.answer(connections.map { RollUpQuery($0, question) }, grouper)
        }
    }

    package func dailyTotals(_ filter: ReportFilter) throws -> DailyTotals? {
        var sum = DailyTotals()
        for part in parts {
            guard let totals = try part.dailyTotals(filter) else { return nil }
            for (day, stalls) in totals.days { sum.add(stalls, day: day) }
            sum.first = [sum.first, totals.first].compactMap(\.self).min()
            sum.last = [sum.last, totals.last].compactMap(\.self).max()
        }
        return sum
    }

    /// Nil also where the stores are grouped by different rules: then every report is grouped again.
    package func rulesHash() throws -> Int64? {
        let hashes = Set(try parts.map { try $0.rulesHash() })
        return hashes.count == 1 ? hashes.first! : nil
    }

    package func rulesText() throws -> String? {
        guard try rulesHash() != nil else { return nil }
        return try parts.lazy.compactMap { try $0.rulesText() }.first
    }

    package func prunedBefore() throws -> UnixTime? {
        try parts.compactMap { try $0.prunedBefore() }.max()
    }

    package func runStalls(
        _ filter: ReportFilter, begin: (RunLoops) -> Void,
        _ body: (RunStall) -> Void
    ) throws -> Bool {
        for part in parts {
            guard try part.runStalls(filter, begin: begin, body) else { return false }
        }
        return true
    }

    package func groups() throws -> [ReportGroup] {
        Array(try parts.reduce(into: Set<ReportGroup>()) { try $0.formUnion($1.groups()) })
    }

    package func timeSpan(_ filter: ReportFilter) throws -> (first: UnixTime, last: UnixTime)? {
        let spans = try parts.compactMap { try $0.timeSpan(filter) }
        guard let first = spans.map(\.first).min(), let last = spans.map(\.last).max() else {
            return nil
        }
        return (first, last)
    }

    package func watchedLoops(
        _ filter: ReportFilter, withLengths: Bool
    ) throws -> [LoopExposure] {
        try parts.flatMap { try $0.watchedLoops(filter, withLengths: withLengths) }
    }

    package func suppressedTotals(_ filter: ReportFilter) throws -> [SuppressedTotals] {
        try parts.flatMap { try $0.suppressedTotals(filter) }
    }

    package func loops() throws -> [(run: ProcessRun, name: String)] {
        try parts.flatMap { try $0.loops() }
    }

    package func status() throws -> StoreStatus {
        try parts.dropFirst().reduce(into: parts[0].status()) { $0.add(try $1.status()) }
    }

    /// Runs `body` on a snapshot of each store.
    private func snapshots<Answer>(_ body: ([Connection]) throws -> Answer) throws -> Answer {
        func descend(_ connections: [Connection]) throws -> Answer {
            guard connections.count < parts.count else { return try body(connections) }
            return try parts[connections.count].answer { try descend(connections + [$0]) }
        }
        return try descend([])
    }
}

/// Why stores cannot be queried together.
package enum MergedStoreError: Error, CustomStringConvertible {
    case sharedSource(UniqueID, String, String)
    case needsOneStore

    package var description: String {
        switch self {
        case .sharedSource(let store, let first, let second):
            "\(first) and \(second) both have reports of the store \(store), which would count twice; "
                + "run 'stallctl ingest' to put both into one store"
        case .needsOneStore:
            "this can be asked of one store only; run 'stallctl ingest' to put the stores into one"
        }
    }
}

extension StoreStatus {
    /// Adds the state of another store.
    fileprivate mutating func add(_ other: StoreStatus) {
        path += ", \(other.path)"
        schemaVersion = min(schemaVersion, other.schemaVersion)
        bytes += other.bytes
        sourceCount += other.sourceCount
        partialSourceCount += other.partialSourceCount
        runCount += other.runCount
        reportCount.addSaturated(other.reportCount)
        sampleCount = zip(sampleCount, other.sampleCount)
        stackCount += other.stackCount
        reportsByState.merge(other.reportsByState, uniquingKeysWith: Self.sum)
        reportsByVerdict.merge(other.reportsByVerdict, uniquingKeysWith: Self.sum)
        rollUpCount += other.rollUpCount
        rollUpDays.formUnion(other.rollUpDays)
        rollUpDayCount = rollUpDays.count
        rollUpReportCount.addSaturated(other.rollUpReportCount)
        apps = Set(apps + other.apps).sorted()
        hosts = Set(hosts + other.hosts).sorted()
        watchedHosts = WatchedHost.recent(watchedHosts + other.watchedHosts, at: .now())
        first = [first, other.first].compactMap(\.self).min()
        last = [last, other.last].compactMap(\.self).max()
        lostByLoop.merge(other.lostByLoop, uniquingKeysWith: +)
        watchedLostByLoop.merge(other.watchedLostByLoop, uniquingKeysWith: +)
        losses.merge(other.losses, uniquingKeysWith: Self.sum)
    }

    private static func sum(_ left: Int, _ right: Int) -> Int { left.addingSaturated(right) }

    private func zip(_ left: Int?, _ right: Int?) -> Int? {
        guard let left, let right else { return nil }
        return left + right
    }
}
