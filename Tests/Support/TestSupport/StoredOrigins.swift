package import StallModel
package import StallQuery

extension QueryableStore {
    /// The origins of all reports, by id.
    package func origins() throws -> [UniqueID: ReportOrigin] {
        var origins: [UniqueID: ReportOrigin] = [:]
        try forEachReport(ReportFilter(), in: .stored, limit: nil) { report, origin, _ in
            origins[report.id] = origin
        }
        return origins
    }
}
