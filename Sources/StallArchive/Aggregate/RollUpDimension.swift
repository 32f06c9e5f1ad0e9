// The dimensions that reports of one roll-up share besides their group.

package import StallModel
package import StallStore

/// The dimensions of a report: its build, its loop's name, its verdict and its cause.
package struct RollUpDimension: Hashable {
    package var app: String
    package var version: String
    package var buildID: BuildID?
    package var loop: String
    package var verdict: StallVerdict
    package var cause: CauseClass?
    /// Whether the watched time of the loop is recorded, so that rates can be given.
    package var isWatched: Bool

    package init(
        app: String, version: String, buildID: BuildID?, loop: String, verdict: StallVerdict,
        cause: CauseClass?, isWatched: Bool
    ) {
        (self.app, self.version, self.buildID) = (app, version, buildID)
        (self.loop, self.isWatched) = (loop, isWatched)
        (self.verdict, self.cause) = (verdict, cause)
    }
}

extension RollUpDimension {
    /// The columns that `init(_:)` reads, in its order.
    package static let columns = "app, version, build_id, loop, verdict, cause, is_watched"

    package init(_ row: Statement) throws(StoreError) {
        self.init(
            app: row.text(), version: row.text(), buildID: row.optionalBytes().map(BuildID.init),
            loop: row.text(), verdict: try row.value(), cause: try row.causeClass(),
            isWatched: try row.integer() != 0)
    }
}
