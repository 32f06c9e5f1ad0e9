// The newest reports, each with its group.

package import StallModel
package import StallQuery

package struct Listing {
    /// One report and its group.
    package struct Entry {
        package var report: ReportSummary
        package var run: ProcessRun
        package var signature: Signature

        package init(report: ReportSummary, run: ProcessRun, signature: Signature) {
            self.report = report
            self.run = run
            self.signature = signature
        }
    }

    /// Newest first.
    package var entries: [Entry]
    /// How many reports the filter selects, up to the counting limit.
    package var reportCount: Int
    /// Whether there are more than that.
    package var isCountCut = false
    package var order = ListingQuestion.Order.began
    /// The time span of all counted reports.
    package var shortIDs: ShortIDs

    package init(
        entries: [Entry], reportCount: Int, isCountCut: Bool = false, shortIDs: ShortIDs
    ) {
        self.entries = entries
        self.reportCount = reportCount
        self.isCountCut = isCountCut
        self.shortIDs = shortIDs
    }
}

extension Listing {
    /// How many reports beyond the shown ones are counted.
    static let furtherCount = 1000

    package init(
        store: any QueryableStore, filter: ReportFilter, rules: GroupingRules = .builtIn, limit: Int
    ) throws {
        let counted = limit.addingSaturated(Self.furtherCount)
        self = try store.consistently {
            let selection = try store.newest(filter, count: counted)
            var listing = try Listing(
                showing: selection.reports.prefix(limit), of: selection,
                reportCount: selection.reports.count, store: store, rules: rules)
            listing.isCountCut = selection.reports.count == counted
            return listing
        }
    }

    /// - Parameters:
    ///   - shown: The selected reports to show, in order.
    ///   - reportCount: How many reports match.
    init(
        showing shown: ArraySlice<ReportSummary>, of selection: ReportSelection, reportCount: Int,
        store: any QueryableStore, rules: GroupingRules
    ) throws {
        let frames = try store.frames(ofStacks: Set(shown.flatMap { $0.stacks.map(\.stack) }))
        let grouper = DefaultGrouper(rules: rules)
        let entries = shown.map { report in
            let stacks = report.stacks.map { (frames[$0.stack] ?? [], $0.weight) }
            let run = selection.runs[report.run]
            return Entry(
                report: report, run: run,
                signature: grouper.signature(of: stacks, executable: run.buildID))
        }
        self.init(
            entries: entries, reportCount: reportCount,
            shortIDs: ShortIDs(shown: shown.map(\.id), among: selection.reports.lazy.map(\.id)))
    }
}
