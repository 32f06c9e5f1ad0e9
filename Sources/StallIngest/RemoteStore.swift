// A central store that is not a file. A build of stallctl without the trait Fleet has no kind of them.

package import StallQuery

/// A central store at an address, such as `clickhouse://hub/stalls`, with the operations of the commands.
package protocol RemoteStore {
    /// The address for messages.
    var name: String { get }

    /// Opens the store for reading.
    ///
    /// - Parameter question: The first question, where that is known.
    /// - Returns: The servers that do not answer, too: the store lacks their reports.
    func open(
        expecting question: AggregateQuestion?
    ) throws -> (store: any QueryableStore, missing: [String])

    /// Upgrades the store to the newest schema; also creates it.
    func migrate() throws -> (from: Int, to: Int)

    /// The rules that the store is grouped by; nil for a store without groups.
    func rules() throws -> StoredRules?

    /// Imports what `fill` puts into a private store, at this path.
    ///
    /// - Parameters:
    ///   - grouper: The rules that the private store is grouped by.
    ///   - rules: The text of their file.
    func ingest(
        grouper: any ReportGrouper, rules: String,
        _ fill: (_ path: String) throws -> IngestJobResult
    ) throws -> IngestJobResult

    /// - Parameter rules: The text of the file of the new rules, which the store keeps.
    /// - Returns: The reports that moved to another group.
    func regroup(by grouper: any ReportGrouper, rules: String) throws -> [RegroupedReports]

    func prune(keeping retention: Retention) throws -> PruneSummary

    /// - Returns: The faults of the store, after the repair.
    func check(repairing: Bool) throws -> [String]
}
