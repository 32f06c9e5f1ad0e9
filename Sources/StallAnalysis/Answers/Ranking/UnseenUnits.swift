// Reports alone do not show which hosts had no stall. Where most had a few, those with none are a part of the fleet
// that a comparison cannot do without: two sets of ten hosts with one stall each would differ beyond chance from two of
// eleven.

internal import StallModel
internal import StallQuery

/// Hosts or runs of one side of which nothing is recorded, because they had no stall.
enum UnseenUnits {
    /// Among this many there may be one that is not seen.
    private static let seenPerUnseen = 10.0

    /// Whether they are too many to be left out. False where some without a stall are known: then all are.
    ///
    /// **Source:** Chao 1984: of those seen once and twice, at least once squared over twice two are not seen.
    static func areMany(
        _ runs: [ComparedRun], _ totals: [RunTotals], _ kind: UnitPlacements.Kind
    ) -> Bool {
        var units: [UniqueID: String] = [:]
        var counts: [String: Int] = [:]
        for run in runs {
            let unit = kind == .host ? run.host : run.run.description
            units[run.run] = unit
            counts[unit] = 0
        }
        for run in totals {
            guard let unit = units[run.run] else { continue }
            counts[unit]! += min(run.totals.count, 3)
        }
        guard !counts.values.contains(0) else { return false }
        let once = Double(counts.values.count { $0 == 1 })
        let twice = Double(counts.values.count { $0 == 2 })
        let unseen = twice > 0 ? once * once / (2 * twice) : once * (once - 1) / 2
        return unseen * seenPerUnseen > Double(counts.count)
    }
}
