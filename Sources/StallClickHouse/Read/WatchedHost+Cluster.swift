// The machines that a cluster has watched time of, and until when.

internal import StallArchive
internal import StallModel
internal import StallQuery
internal import StallStore

extension WatchedHost {
    /// Queries the apps of each machine with watched time in the last 32 days.
    static func question(at now: UnixTime) -> ClickHouseQuery {
        """
        select host, app, max(start_us + intDiv(watched_ns, 1000)) from exposure
        where day > (select least(max(day), toInt32(\(now.microseconds.day))) from exposure) - 32
        group by host, app
        """
    }

    static func read(_ server: ClickHouseServer, at now: UnixTime) throws -> [WatchedHost] {
        var rows = try server.rows(question(at: now), columnCount: 3)
        var hosts: [WatchedHost] = []
        while try rows.step() {
            hosts.append(
                WatchedHost(
                    host: try rows.text(), app: try rows.text(),
                    last: UnixTime(microseconds: try rows.integer())))
        }
        return recent(hosts, at: now)
    }

}
