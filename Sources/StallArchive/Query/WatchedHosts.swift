// The machines that a central store has watched time of, and until when.

package import StallModel
package import StallQuery
package import StallStore

extension Connection {
    /// The machines and apps of the last days; none in an agent's store.
    ///
    /// **Cost:** grows with the loops of the last 32 days.
    package func watchedHosts(at now: UnixTime) throws -> [WatchedHost] {
        guard try hasExposureDays else { return [] }
        let rows = try prepare(
            """
            select process_run.host, process_run.app, max(exposure_day.end_us)
            from exposure_day join loop on loop.id = exposure_day.loop
            join process_run on process_run.id = loop.run
            where exposure_day.day > (select min(max(day), ?) from exposure_day) - 32
            group by process_run.host, process_run.app
            """)
        try rows.bind(now.microseconds.day)
        var hosts: [WatchedHost] = []
        while try rows.step() {
            hosts.append(
                WatchedHost(
                    host: rows.text(), app: rows.text(),
                    last: UnixTime(microseconds: try rows.time_us())))
        }
        return WatchedHost.recent(hosts, at: now)
    }
}
