// Until when the apps of each machine have recorded watched time. An agent writes it every minute, whether anything
// stalled or not, so that a machine without any is silent: its job does not run, or it is gone.

package import StallModel

/// The end of the watched time of an app on a machine.
package struct WatchedHost: Hashable, Sendable {
    package var host: String
    package var app: String
    package var last: UnixTime

    package init(host: String, app: String, last: UnixTime) {
        (self.host, self.app, self.last) = (host, app, last)
    }

    /// The time after which a machine is silent.
    package static let silence_us: Int64 = 3_600_000_000
    /// The time after which it is not missed any more.
    package static let memory_us: Int64 = 30 * 86_400_000_000

    /// Where the time that is remembered begins. A machine whose clock is ahead moves it no further than to `now`, and
    /// it does not move on in a store that nothing is added to.
    package static func memoryStart(newest: UnixTime, now: UnixTime) -> UnixTime {
        UnixTime(microseconds: min(newest, now).microseconds.addingSaturated(-memory_us))
    }

    /// The latest time of each app and machine, in their order, without those that are forgotten.
    package static func recent(_ hosts: [WatchedHost], at now: UnixTime) -> [WatchedHost] {
        guard let newest = hosts.map(\.last).max() else { return [] }
        let start = memoryStart(newest: newest, now: now)
        let groups = Dictionary(grouping: hosts) { [$0.host, $0.app] }
        return groups.values.compactMap { $0.max { $0.last < $1.last } }
            .filter { $0.last >= start }
            .sorted { ($0.host, $0.app) < ($1.host, $1.app) }
    }
}

/// A machine without watched time for an hour.
package struct SilentHost: Hashable, Sendable {
    package var host: String
    /// In alphabetical order.
    package var apps: [String]
    package var last: UnixTime
}

extension StoreStatus {
    /// The machines that are silent, those that pushed last first.
    package func silentHosts(at now: UnixTime) -> [SilentHost] {
        let start = now.microseconds.addingSaturated(-WatchedHost.silence_us)
        return Dictionary(grouping: watchedHosts, by: \.host).compactMap { host, apps in
            guard let last = apps.map(\.last).max(), last.microseconds <= start else { return nil }
            return SilentHost(host: host, apps: apps.map(\.app).sorted(), last: last)
        }
        .sorted { ($1.last, $0.host) < ($0.last, $1.host) }
    }
}
