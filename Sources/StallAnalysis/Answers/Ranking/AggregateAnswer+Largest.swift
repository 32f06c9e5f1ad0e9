// The groups that lost the most time, for outputs that have room for few.

import StallModel
package import StallQuery

extension AggregateAnswer {
    /// The groups that lost the most time, and the totals of all others.
    package func largest(_ limit: Int) -> (groups: [StallAggregate], rest: StallTotals) {
        let groups = groups.sorted { ($0.total, $1.count) > ($1.total, $0.count) }
        return (Array(groups.prefix(limit)), Self.sum(groups.dropFirst(limit)))
    }

    /// The totals of all listed groups.
    package var totals: StallTotals { Self.sum(groups) }

    private static func sum(_ groups: some Sequence<StallAggregate>) -> StallTotals {
        groups.reduce(into: StallTotals()) { $0.add($1.totals) }
    }
}
