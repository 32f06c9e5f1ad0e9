// The call that may block of each group in a ranking of violations, from the group's example report.

package import StallModel
package import StallQuery

extension Ranking {
    /// The calls by example report, of the first groups; empty where violations are not ranked.
    package func blockingCalls(
        in store: any QueryableStore, limit: Int
    ) throws -> [UniqueID: String] {
        guard overview.ranked.contains(.blocking) else { return [:] }
        return try groups.prefix(limit).compactMap(\.example).reduce(into: [:]) {
            $0[$1] = try store.reports(idPrefix: $1.description).first?.blockingCall
        }
    }
}

extension StallReport {
    /// The call that may block, of a violation; nil of other reports, and if it is not recorded.
    package var blockingCall: String? {
        verdict == .blocking ? cause?.evidence(.blockingCall) : nil
    }
}
