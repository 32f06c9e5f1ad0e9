// What a store can be asked. A store of another kind answers the same questions, and everything that plans and renders
// answers stays as it is.

/// The reports that a filter selects, lean enough to rank millions.
package struct ReportSelection: Hashable, Sendable {
    /// The process runs that `ReportSummary.run` indexes.
    package var runs: [ProcessRun]
    /// In no order that means anything.
    package var reports: [ReportSummary]

    package init(runs: [ProcessRun], reports: [ReportSummary]) {
        self.runs = runs
        self.reports = reports
    }
}

/// A store as one asks it questions. Nothing here writes; each question is answered from one snapshot.
package protocol QueryableStore {
    /// What messages call it, and where its rules are looked for.
    var path: String { get }
    /// Who writes it.
    var role: StoreRole { get }

    /// The stalls that a filter selects, added up by what they have in common.
    ///
    /// - Parameter grouper: Decides the groups of reports whose group is not stored.
    func aggregates(
        _ question: AggregateQuestion, grouper: any ReportGrouper
    ) throws -> AggregateAnswer

    /// Under which rules the stored groups were decided; nil when none are stored.
    func rulesHash() throws -> Int64?

    /// Of stalls that began before then only aggregates tell, because their reports were pruned; nil when none were.
    func prunedBefore() throws -> UnixTime?

    /// The reports that the filter selects, without frames.
    func summaries(_ filter: ReportFilter) throws -> ReportSelection

    /// The newest of them, the newest first.
    func newest(_ filter: ReportFilter, count: Int) throws -> ReportSelection

    /// The stacks of the stalls that the filter selects, added up.
    func stackSets(_ filter: ReportFilter) throws -> StackSets

    /// The frames of stacks, innermost first; an unknown number is absent from the answer.
    func frames(ofStacks stacks: Set<Int64>) throws -> [Int64: [Frame]]

    /// The reports that the filter selects, newest first, with samples and frames.
    func reports(_ filter: ReportFilter, limit: Int?) throws -> [StallReport]

    /// The same reports one by one, with where each was first written to; nothing of them is kept.
    ///
    /// **Cost:** memory grows with the different places on their stacks, not with the reports.
    func forEachReport(
        _ filter: ReportFilter, in order: CursorOrder, limit: Int?,
        _ body: (StallReport, ReportOrigin, any StoreLookup) throws -> Void) throws

    /// The stalls that the filter selects one by one, with their stacks as numbers; of other verdicts only where it asks.
    func forEachStall(
        _ filter: ReportFilter, in order: CursorOrder, limit: Int?,
        _ body: (StallTrace, any StoreLookup) throws -> Void) throws

    /// When the first and the last of the stalls that the filter selects began; nil without any.
    func timeSpan(_ filter: ReportFilter) throws -> (first: UnixTime, last: UnixTime)?

    /// The reports of the one id that begins with these hexadecimal digits: several where sources say different things
    /// of it.
    func reports(idPrefix: String) throws -> [StallReport]

    /// Where the reports that the filter selects were first written to, by their ids.
    func origins(_ filter: ReportFilter) throws -> [UniqueID: ReportOrigin]

    /// The images that a run's reports speak of, where its loader had put them last.
    func images(ofRun run: UniqueID) throws -> [Image]

    /// What the watched stretches of each loop that the filter selects add up to, in no order that means anything.
    ///
    /// - Parameter withLengths: Also add up how long iterations took, which is most of the work.
    func watchedLoops(_ filter: ReportFilter, withLengths: Bool) throws -> [LoopExposure]

    /// The stalls without reports that the filter selects.
    func suppressedStalls(_ filter: ReportFilter) throws -> [SuppressedStalls]

    /// The loops that are known, with their processes, whether they have reports or not.
    func loops() throws -> [(run: ProcessRun, name: String)]

    /// The store in numbers.
    func status() throws -> StoreStatus
}
