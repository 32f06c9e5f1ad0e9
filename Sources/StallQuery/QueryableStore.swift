// The queries that a store supports. Another kind of store that answers them needs no change in planning or rendering.

package import StallModel

/// The reports that a filter selects, compact enough to rank millions.
package struct ReportSelection: Hashable, Sendable {
    /// The process runs that `ReportSummary.run` indexes.
    package var runs: [ProcessRun]
    /// In unspecified order.
    package var reports: [ReportSummary]

    package init(runs: [ProcessRun], reports: [ReportSummary]) {
        self.runs = runs
        self.reports = reports
    }
}

/// A store that can be queried. No method writes; each query reads one snapshot, and so do all queries of one
/// `consistently`.
package protocol QueryableStore {
    /// Names the store in messages; its rules file is looked up beside it.
    var path: String { get }
    /// The kind of program that writes it.
    var role: StoreRole { get }

    /// Runs `body`, whose queries of this store all read one snapshot: what one of them names the next one finds,
    /// also beside a prune. A writer's log grows until it returns.
    func consistently<Answer>(_ body: () throws -> Answer) throws -> Answer

    /// Totals of the selected stalls, by group.
    ///
    /// - Parameter grouper: Decides the groups of reports whose group is not stored.
    func aggregates(
        _ question: AggregateQuestion, grouper: any ReportGrouper
    ) throws -> AggregateAnswer

    /// Totals of the selected stalls by day, whatever their group; nil if the store has none added up.
    func dailyTotals(_ filter: ReportFilter) throws -> DailyTotals?

    /// Totals of the selected stalls by parts of a time, whatever their group; nil if the store does not add them up.
    ///
    /// - Parameter bounds: At least two, in order: each part begins with one and ends before the next.
    func totals(_ filter: ReportFilter, between bounds: [UnixTime]) throws -> [StallTotals]?

    /// Hands over the selected stalls one by one; false if the store does not have runs, or has no groups.
    ///
    /// - Parameter begin: Is given what the stalls' indices are of; again for each of several stores.
    func runStalls(
        _ filter: ReportFilter, begin: (RunLoops) -> Void,
        _ body: (RunStall) -> Void
    ) throws -> Bool

    /// The hash of the rules of the stored groups; nil if no groups are stored.
    func rulesHash() throws -> Int64?

    /// The text of these rules before the built-in ones; nil if the store does not have it.
    func rulesText() throws -> String?

    /// Stalls that began before this time exist only in aggregates, because their reports were pruned; nil if none
    /// were.
    func prunedBefore() throws -> UnixTime?

    /// The stored groups, in unspecified order; none if no groups are stored.
    func groups() throws -> [ReportGroup]

    /// The reports that the filter selects, without frames.
    ///
    /// - Parameter signatures: Only reports whose stored group has one of these hashes, or that have none; nil for all.
    func summaries(
        _ filter: ReportFilter, ofGroups signatures: Set<Int64>?
    ) throws -> ReportSelection

    /// The newest of the selected reports, newest first.
    ///
    /// - Parameter signature: Only reports whose stored group has this hash; nil for all.
    func newest(_ filter: ReportFilter, signature: Int64?, count: Int) throws -> ReportSelection

    /// The stacks of the selected stalls, with totals.
    func stackSets(_ filter: ReportFilter) throws -> StackSets

    /// The selected stalls, compact enough to hold millions of them.
    ///
    /// - Parameter expected: About how many there are, which saves memory.
    func stallTable(_ filter: ReportFilter, expected: Int) throws -> StallTable

    /// The functions on stacks as numbers, by the index of each stack in the list.
    ///
    /// - Parameter number: Gives a distinct frame its number: without its line, and without its offset if it has a
    ///   name. Called once for each.
    func functions(
        ofStacks stacks: [Int64], _ number: (Frame) -> Int32
    ) throws -> StackFunctions

    /// The id of a report by its source and its number there; nil if there is none.
    func reportID(source: Int64, seq: Int64) throws -> UniqueID?

    /// The frames of stacks, innermost first; an unknown number is absent from the answer.
    func frames(ofStacks stacks: Set<Int64>) throws -> [Int64: [Frame]]

    /// Passes the reports that the filter selects to `body` one by one, with samples and frames, each with its origin,
    /// and retains none of them.
    ///
    /// **Cost:** memory grows with the number of distinct locations on their stacks, not with the number of reports.
    func forEachReport(
        _ filter: ReportFilter, in order: CursorOrder, limit: Int?,
        _ body: (StallReport, ReportOrigin, any StoreLookup) throws -> Void) throws

    /// Passes the reports to `body` one by one, newest first, with their stacks as numbers; none where no groups are
    /// stored.
    ///
    /// - Parameter withThreads: Also read the other threads.
    func forEachOutline(
        _ filter: ReportFilter, limit: Int?, withThreads: Bool,
        _ body: (ReportOutline, any OutlineLookup) throws -> Void) throws

    /// The time of the selected stalls by app, loop and stack, in unspecified order.
    func stackTimes(_ filter: ReportFilter) throws -> [StackTime]

    /// Passes the selected stalls to `body` one by one, with their stacks as numbers. Other verdicts than `stalled`
    /// only if the filter names them.
    func forEachStall(
        _ filter: ReportFilter, in order: CursorOrder, limit: Int?,
        _ body: (StallTrace, any StoreLookup) throws -> Void) throws

    /// When the first and the last of the selected stalls began; nil without any.
    func timeSpan(_ filter: ReportFilter) throws -> (first: UnixTime, last: UnixTime)?

    /// The reports of the only id with this hexadecimal prefix: several if sources differ about it.
    func reports(idPrefix: String) throws -> [StallReport]

    /// The images that a run's reports refer to, at their last load addresses.
    func images(ofRun run: UniqueID) throws -> [Image]

    /// The totals of the watched intervals of each selected loop, in unspecified order.
    ///
    /// - Parameter withLengths: Also add up the iteration lengths, which is most of the work.
    func watchedLoops(_ filter: ReportFilter, withLengths: Bool) throws -> [LoopExposure]

    /// How long the selected loops were watched, in unspecified order.
    func watchedTimes(_ filter: ReportFilter) throws -> [WatchedLoopTime]

    /// The stalls without reports of the selected loops, in unspecified order.
    func suppressedTotals(_ filter: ReportFilter) throws -> [SuppressedTotals]

    /// All loops with their processes, with or without reports.
    func loops() throws -> [(run: ProcessRun, name: String)]

    /// A summary of the store.
    func status() throws -> StoreStatus
}

extension QueryableStore {
    package func consistently<Answer>(_ body: () throws -> Answer) throws -> Answer { try body() }

    package func watchedTimes(_ filter: ReportFilter) throws -> [WatchedLoopTime] {
        try watchedLoops(filter, withLengths: false).map(WatchedLoopTime.init)
    }

    package func totals(
        _ filter: ReportFilter, between bounds: [UnixTime]
    ) throws -> [StallTotals]? { nil }

    package func runStalls(
        _ filter: ReportFilter, begin: (RunLoops) -> Void,
        _ body: (RunStall) -> Void
    ) throws -> Bool { false }

    package func summaries(_ filter: ReportFilter) throws -> ReportSelection {
        try summaries(filter, ofGroups: nil)
    }

    package func newest(_ filter: ReportFilter, count: Int) throws -> ReportSelection {
        try newest(filter, signature: nil, count: count)
    }
}

extension Sequence where Element == any QueryableStore {
    /// Runs `body`, whose queries of each of the stores read one snapshot of it.
    package func consistently<Answer>(_ body: () throws -> Answer) throws -> Answer {
        let stores = Array(self)
        func descend(from index: Int) throws -> Answer {
            guard index < stores.count else { return try body() }
            return try stores[index].consistently { try descend(from: index + 1) }
        }
        return try descend(from: 0)
    }
}

extension QueryableStore {
    /// The rules of the stored groups; nil if no groups are stored.
    package func storedRules() throws -> StoredRules? {
        try rulesHash().map { StoredRules(hash: $0, text: try rulesText()) }
    }
}
