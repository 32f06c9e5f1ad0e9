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
    static let silence_us: Int64 = 3_600_000_000
    /// The time after which it is not missed any more.
    static let memory_us: Int64 = 30 * 86_400_000_000

    /// Where the time that is remembered begins. A machine whose clock is ahead moves it no further than to `now`, and
    /// it does not move on in a store that nothing is added to.
    static func memoryStart(newest: UnixTime, now: UnixTime) -> UnixTime {
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

extension SilentHost {
    /// Whether a name ends as those of a Kubernetes Deployment's pods do (`-7d9f8c6b5d-x2vbn`): each rollout leaves names
    /// that never record again.
    static func isPod(_ host: String) -> Bool {
        let parts = host.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[parts.count - 1].count == 5 else { return false }
        let set = parts[parts.count - 2]
        let letters = Set("bcdfghjklmnpqrstvwxz2456789".utf8)
        return parts.dropLast(2).contains { !$0.isEmpty } && (8...10).contains(set.count)
            && parts.suffix(2).allSatisfy { $0.allSatisfy(letters.contains) }
    }
}

extension StoreStatus {
    /// The machines that are silent, those that pushed last first. A Deployment's pod is none when each of its apps was
    /// watched elsewhere an hour later: a rollout replaced it.
    package func silentHosts(at now: UnixTime) -> [SilentHost] {
        let start = now.microseconds.addingSaturated(-WatchedHost.silence_us)
        let newest = Dictionary(watchedHosts.map { ($0.app, $0.last) }, uniquingKeysWith: max)
        return Dictionary(grouping: watchedHosts, by: \.host).compactMap { host, apps in
            guard let last = apps.map(\.last).max(), last.microseconds <= start else { return nil }
            let successor = last.microseconds.addingSaturated(WatchedHost.silence_us)
            let isReplaced = apps.allSatisfy {
                (newest[$0.app] ?? $0.last).microseconds >= successor
            }
            guard !(isReplaced && SilentHost.isPod(host)) else { return nil }
            return SilentHost(host: host, apps: apps.map(\.app).sorted(), last: last)
        }
        .sorted { ($1.last, $0.host) < ($0.last, $1.host) }
    }

    /// The machines whose watched time ends after `now`, those furthest ahead first: their clocks are ahead of this
    /// one's, and whether they are silent is not known until then.
    package func hostsAhead(of now: UnixTime) -> [WatchedHost] {
        let limit = now.microseconds.addingSaturated(WatchedHost.silence_us)
        return Dictionary(grouping: watchedHosts, by: \.host)
            .compactMap { _, apps in apps.max { $0.last < $1.last } }
            .filter { $0.last.microseconds > limit }
            .sorted { ($1.last, $0.host) < ($0.last, $1.host) }
    }
}
