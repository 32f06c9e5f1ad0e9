// What a store says about itself and what it holds.

/// Who writes a store. The raw value is the file's SQLite application id; never change one.
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

/// Why an agent saw a stall and did not keep it. The raw values are stored; never renumber them.
package enum LossReason: UInt8, Hashable, Sendable, CaseIterable {
    /// A rate limit held it back.
    case suppressed = 0
    /// The queue to the writer was full.
    case dropped = 1
    /// The store could not be written.
    case unwritable = 2
    /// It was written, and later evicted to stay within the quota.
    case evicted = 3
    /// Of a stall that may well be kept: the app was not called back, because its callbacks take too long.
    case callback = 4
    /// Times that the watchdog did not come back for long: stalls were missed meanwhile.
    case blind = 5
}

/// A store in numbers.
package struct StoreStatus: Hashable, Sendable {
    package var path: String
    package var role: StoreRole
    /// Its `user_version`.
    package var schemaVersion: Int
    /// Of the file and its write-ahead log.
    package var bytes: Int64
    /// The stores that its reports were first written to.
    package var sourceCount = 0
    package var runCount = 0
    package var reportCount = 0
    /// Nil in a central store, where only every report could tell.
    package var sampleCount: Int?
    package var stackCount = 0
    package var reportsByState: [StallState: Int] = [:]
    package var reportsByVerdict: [StallVerdict: Int] = [:]
    /// The totals of a day and a group, and how many days they are of; none in an agent's store.
    package var rollUpCount = 0
    package var rollUpDayCount = 0
    /// The reports that those count: also those that were pruned since.
    package var rollUpReportCount = 0
    /// In alphabetical order.
    package var apps: [String] = []
    package var hosts: [String] = []
    /// When the first and the last report started.
    package var first: UnixTime?
    package var last: UnixTime?
    /// The time lost in stalls, by the name of the loop; of pruned reports as well.
    package var lostByLoop: [String: Duration] = [:]
    /// The part of it that was lost in loops whose watched time is recorded.
    package var watchedLostByLoop: [String: Duration] = [:]
    /// Stalls that were seen and not kept.
    package var losses: [LossReason: Int] = [:]

    package init(path: String, role: StoreRole, schemaVersion: Int, bytes: Int64) {
        self.path = path
        self.role = role
        self.schemaVersion = schemaVersion
        self.bytes = bytes
    }
}
