// A store's metadata and summary.

/// Which kind of program writes a store. The raw value is the file's SQLite application id; never change one.
package enum StoreRole: Int32, Hashable, Sendable {
    /// Written by the agents of one or more processes ("STL1").
    case agent = 0x5354_4c31
    /// Written by `ingest` from other stores ("STLC").
    case central = 0x5354_4c43

    package var word: String {
        switch self {
        case .agent: "agent"
        case .central: "central"
        }
    }
}

/// Why an agent could not record a stall that it saw. The raw values are stored; never renumber them.
package enum LossReason: UInt8, Hashable, Sendable, CaseIterable {
    /// A rate limit suppressed it.
    case suppressed = 0
    /// The queue to the writer was full.
    case dropped = 1
    /// The store could not be written.
    case unwritable = 2
    /// It was written, and evicted later to stay within the quota.
    case evicted = 3
    /// The report may be stored, but the app's callback was skipped because its callbacks take too long.
    case callback = 4
    /// The watchdog was delayed for long: stalls may have been missed meanwhile.
    case blind = 5
}

/// A summary of a store.
package struct StoreStatus: Hashable, Sendable {
    package var path: String
    package var role: StoreRole
    /// The file's `user_version`.
    package var schemaVersion: Int
    /// Size of the file and its write-ahead log.
    package var bytes: Int64
    /// The number of stores that its reports were first written to.
    package var sourceCount = 0
    /// Those of which only a part was imported so far.
    package var partialSourceCount = 0
    package var runCount = 0
    package var reportCount = 0
    /// Nil in a central store, where it would need a read of every report.
    package var sampleCount: Int?
    package var stackCount = 0
    package var reportsByState: [StallState: Int] = [:]
    package var reportsByVerdict: [StallVerdict: Int] = [:]
    /// The number of roll-up rows, and of the days they cover; none in an agent's store.
    package var rollUpCount = 0
    package var rollUpDayCount = 0
    /// The number of reports that the roll-ups cover, including those pruned since.
    package var rollUpReportCount = 0
    /// In alphabetical order.
    package var apps: [String] = []
    package var hosts: [String] = []
    /// When the first and the last report started.
    package var first: UnixTime?
    package var last: UnixTime?
    /// The time lost in stalls by loop name, pruned reports included.
    package var lostByLoop: [String: Duration] = [:]
    /// The part of it that was lost in loops whose watched time is recorded.
    package var watchedLostByLoop: [String: Duration] = [:]
    /// Stalls that were seen but not recorded.
    package var losses: [LossReason: Int] = [:]

    package init(path: String, role: StoreRole, schemaVersion: Int, bytes: Int64) {
        self.path = path
        self.role = role
        self.schemaVersion = schemaVersion
        self.bytes = bytes
    }
}
