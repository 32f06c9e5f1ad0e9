package import StallModel

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
    /// Those days since 1970, where they are known: two stores may cover the same.
    package var rollUpDays: Set<Int64> = []
    /// The number of reports that the roll-ups cover, including those pruned since.
    package var rollUpReportCount = 0
    /// In alphabetical order.
    package var apps: [String] = []
    package var hosts: [String] = []
    /// Of a central store: the machines whose watched time was recorded, by name and app.
    package var watchedHosts: [WatchedHost] = []
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
