// A store's summary as JSON: the schema of `status --json`. Key names are a contract.

package import StallModel
package import StallQuery

/// The end of the watched time of an app on a machine.
package struct WatchedHostRow: Encodable {
    package var host: String
    package var app: String
    var lastWatched: String
}

/// A store's summary as JSON.
package struct StatusRow: Encodable {
    package let schema = "stallctl.status/1"
    package var store: String
    package var role: String
    package var schemaVersion: Int
    package var bytes: Int64
    package var sourceCount: Int
    /// Sources of which only a part was imported so far.
    package var partialSourceCount: Int
    package var runCount: Int
    package var reportCount: Int
    /// Null for a central store.
    @Nullable package var sampleCount: Int?
    package var stackCount: Int
    package var rollUpCount: Int
    package var rollUpDayCount: Int
    /// The reports in the roll-ups, including pruned ones; what `top` ranks.
    package var rollUpReportCount: Int
    /// Quarantined files: ingest could not import them and does not retry until they change.
    package var quarantinedCount: Int
    package var states: [String: Int]
    package var verdicts: [String: Int]
    package var apps: [String]
    package var hosts: [String]
    /// Until when the apps of each machine recorded watched time, in a central store.
    package var watchedHosts: [WatchedHostRow]
    /// The machines without any for an hour.
    package var silentHosts: [String]
    @Nullable package var firstSeen: String?
    @Nullable package var lastSeen: String?
    package var losses: [String: Int]
    /// The watched loops.
    package var loops: [WatchedLoopRow]
    package var suppressed: SuppressedRow

    package init(_ answer: StatusAnswer, quarantinedCount: Int = 0, at now: UnixTime) {
        let (status, exposure) = (answer.status, answer.exposure)
        store = status.path
        role = status.role.word
        schemaVersion = status.schemaVersion
        bytes = status.bytes
        sourceCount = status.sourceCount
        partialSourceCount = status.partialSourceCount
        runCount = status.runCount
        reportCount = status.reportCount
        sampleCount = status.sampleCount
        stackCount = status.stackCount
        rollUpCount = status.rollUpCount
        rollUpDayCount = status.rollUpDayCount
        rollUpReportCount = status.rollUpReportCount
        self.quarantinedCount = quarantinedCount
        states = Self.words(status.reportsByState)
        verdicts = Self.words(status.reportsByVerdict)
        apps = status.apps
        hosts = status.hosts
        watchedHosts = status.watchedHosts.map {
            WatchedHostRow(host: $0.host, app: $0.app, lastWatched: $0.last.rfc3339)
        }
        silentHosts = status.silentHosts(at: now).map(\.host)
        firstSeen = status.first?.rfc3339
        lastSeen = status.last?.rfc3339
        losses = Self.words(status.losses)
        loops = exposure.loops
        suppressed = exposure.suppressed
    }

    private static func words<Fact: DataWord>(_ counts: [Fact: Int]) -> [String: Int] {
        Dictionary(uniqueKeysWithValues: counts.map { ($0.key.word, $0.value) })
    }
}
