// One group on both sides as JSON: the schema of `diff --json`.

internal import StallModel
package import StallQuery

/// One group on both sides, or the total, as JSON: the schema of `diff --json`. Key names are a contract.
package struct DiffRow: Encodable {
    package let schema = "stallctl.diff/1"
    /// `total` for all groups together (the first row), or `group`.
    package var kind: String
    package var change: String
    @Nullable package var signature: String?
    package var title: String
    package var frames: [String]
    package var countA: Int
    package var countB: Int
    package var totalMsA: Double
    package var totalMsB: Double
    /// Null unless watched time is known on both sides.
    @Nullable package var rateMsPerHourA: Double?
    @Nullable package var rateMsPerHourB: Double?
    /// B's time lost divided by A's, per watched hour if known; null if A lost nothing.
    @Nullable package var ratio: Double?
    /// The bounds of the 95% confidence interval; null for no bound.
    @Nullable package var ratioLow: Double?
    @Nullable package var ratioHigh: Double?
    /// The stalls that rates and ratio are based on: those in watched loops if watched time is recorded on both sides,
    /// else all.
    package var comparedCountA: Int
    package var comparedCountB: Int
    package var comparedTotalMsA: Double
    package var comparedTotalMsB: Double
    /// Whether chance does not explain the difference, as one of all groups.
    package var significant: Bool
    /// The unit that was resampled, `host` or `run`, and how many of it each side has; null if there is no judgement.
    @Nullable package var unit: String?
    @Nullable package var unitsA: Int?
    @Nullable package var unitsB: Int?
    /// Why there is no judgement: `3 hosts`; null if there is one.
    @Nullable package var cannotTell: String?

    package static func rows(_ comparison: Comparison) -> [DiffRow] {
        let total = DiffRow(
            kind: "total", comparison.change, signature: nil, title: "all together", frames: [],
            comparison.first, comparison.second, comparison.compared, comparison.ratio,
            comparison.isSignificant, comparison.cannotTell, comparison)
        return [total]
            + comparison.groups.map { group in
                DiffRow(
                    kind: "group", group.change, signature: hexadecimal(group.group.signature),
                    title: group.title, frames: group.group.frames, group.first, group.second,
                    group.compared, group.ratio, group.isSignificant,
                    comparison.cannotTell ?? group.cannotTell, comparison)
            }
    }

    private init(
        kind: String, _ change: GroupChange, signature: String?, title: String, frames: [String],
        _ first: StallTotals, _ second: StallTotals,
        _ compared: (first: StallTotals, second: StallTotals), _ ratio: RateRatio,
        _ isSignificant: Bool, _ cannotTell: String?, _ comparison: Comparison
    ) {
        self.kind = kind
        self.change = change.rawValue
        self.signature = signature
        self.title = title
        self.frames = frames
        countA = first.count
        countB = second.count
        totalMsA = first.total.milliseconds
        totalMsB = second.total.milliseconds
        rateMsPerHourA = comparison.watched.map {
            compared.first.total.milliseconds / ($0.first / .seconds(3600))
        }
        rateMsPerHourB = comparison.watched.map {
            compared.second.total.milliseconds / ($0.second / .seconds(3600))
        }
        comparedCountA = compared.first.count
        comparedCountB = compared.second.count
        comparedTotalMsA = compared.first.total.milliseconds
        comparedTotalMsB = compared.second.total.milliseconds
        func finite(_ value: Double) -> Double? { value.isFinite ? value : nil }
        self.ratio = finite(ratio.value)
        // Without a judgement no bound is what it is.
        ratioLow = cannotTell == nil ? finite(ratio.low) : nil
        ratioHigh = finite(ratio.high)
        significant = isSignificant
        unit = comparison.units?.word
        unitsA = comparison.units?.first
        unitsB = comparison.units?.second
        self.cannotTell = cannotTell
    }
}
