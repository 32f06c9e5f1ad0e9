// Stalls that were seen and purposely not reported: only their number and time are recorded.

/// Why a stall has no report although it could have had one. The raw values are stored; never renumber them.
public enum SuppressionReason: UInt8, CaseIterable, Hashable, Sendable {
    /// Its code location had reached its limit of reports per hour.
    case place = 0
    /// The process had reached its limit of reports per hour.
    case hour = 1
    /// A debugger was attached, and the policy is to ignore such stalls.
    case debugger = 2
}

/// The stalls of one loop at one code location that have no report.
public struct SuppressedStalls: Hashable, Sendable {
    /// The process.
    public var run: ProcessRun
    /// The target's name.
    public var loop: String
    /// A hash of the location in the app's code. Reports of the same location have the same value.
    public var place: Int64
    /// Why they have no report.
    public var reason: SuppressionReason
    /// The number of stalls.
    public var count: Int
    /// Their total time.
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
