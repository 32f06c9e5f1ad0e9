// Stalls that were seen, and of which no report was kept on purpose: only how many and how long.

/// Why a stall has no report although it could have had one. The raw values are stored; never renumber them.
public enum SuppressionReason: UInt8, CaseIterable, Hashable, Sendable {
    /// Its place had its share of reports for the hour.
    case place = 0
    /// The process had its share of reports for the hour.
    case hour = 1
    /// A debugger was attached, and the policy is to ignore such stalls.
    case debugger = 2
}

/// The stalls of one loop at one place that have no report.
public struct SuppressedStalls: Hashable, Sendable {
    /// The process.
    public var run: ProcessRun
    /// The name the loop is watched under.
    public var loop: String
    /// A hash of the place in the app's code: what reports of the same place share.
    public var place: Int64
    /// Why they have no report.
    public var reason: SuppressionReason
    /// How many there were.
    public var count: Int
    /// What they add up to.
    public var total: Duration

    package init(
        run: ProcessRun, loop: String, place: Int64, reason: SuppressionReason, count: Int,
        total: Duration
    ) {
        self.run = run
        self.loop = loop
        self.place = place
        self.reason = reason
        self.count = count
        self.total = total
    }
}
