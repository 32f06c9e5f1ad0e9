// History under new rules.

internal import StallArchive
import StallModel
package import StallQuery
package import StallStore

/// Reports that moved from one group to another.
package struct RegroupedReports: Hashable, Sendable {
    /// Nil for reports that were in no group.
    package var before: ReportGroup?
    package var after: ReportGroup
    package var count: Int

    package init(before: ReportGroup?, after: ReportGroup, count: Int) {
        (self.before, self.after, self.count) = (before, after, count)
    }
}

/// Decides the groups of all reports of a central store by the grouper's rules, and rebuilds its roll-ups.
///
/// - Returns: The reports that moved, by old and new group, most reports first.
package func regroupStore(
    path: String, grouper: any ReportGrouper
) throws(StoreError) -> [RegroupedReports] {
    guard FileFacts(path) != nil else { throw .missing(path: path) }
    let file = try StoreFile.openForWriting(
        path: path, role: .central, followsLinks: true, wait: .seconds(60))
    let moved = try regroupReports(file.connection, grouper)
    try file.close()
    return moved
}

/// Decides the groups of all reports of a store that is open.
///
/// - Returns: The reports that moved, by old and new group, most reports first.
package func regroupReports(
    _ connection: Connection, _ grouper: any ReportGrouper
) throws(StoreError) -> [RegroupedReports] {
    try connection.transaction(.immediate) {
        let before = try SignatureRows.groups(connection)
        let grouping = try Grouping(connection, grouper)
        try grouping.rebuild()
        let after = try SignatureRows.groups(connection)
        return grouping.moves.compactMap { move, count -> RegroupedReports? in
            let former = move.from.flatMap { before[$0] }
            // Rows of one group differ in the kind of wait, or in being cut.
            guard let group = after[move.to], group.signature != former?.signature else {
                return nil
            }
            return RegroupedReports(before: former, after: group, count: count)
        }
    }.inOrder
}

extension [RegroupedReports] {
    /// Most reports first.
    package var inOrder: [RegroupedReports] {
        sorted { left, right in
            (right.count, left.after.title, left.before?.title ?? "") < (
                left.count, right.after.title, right.before?.title ?? ""
            )
        }
    }
}
