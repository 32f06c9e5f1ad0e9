// The store's calls with the tests' plain rules of grouping.

package import StallIngest
package import StallModel
package import StallQuery
package import StallStore
package import TestSupport

extension Ingest {
    package convenience init(into path: String) throws(StoreError) {
        try self.init(into: path, grouper: PlainGrouper())
    }
}

package func pruneStore(
    path: String, startedBefore time: UnixTime? = nil, toBytes bytes: Int64? = nil
) throws(StoreError) -> PruneSummary {
    try pruneStore(
        path: path, keeping: Retention(reportsSince: time, bytes: bytes), grouper: PlainGrouper())
}

extension PlainGrouper {
    /// The group of a report as it was read.
    package func group(of report: StallReport, cause: CauseClass? = nil) -> ReportGroup {
        let samples = report.samples.filter { !$0.isLate && !$0.frames.isEmpty }
        return group(
            of: samples.map { (stack($0.frames, executable: report.run.buildID), $0.weight) },
            cause: cause)
    }
}
