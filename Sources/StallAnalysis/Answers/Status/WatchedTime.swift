// The watched time of a ranking's loops: the denominator of its rates.

internal import StallModel
internal import StallQuery

/// The watched time of all selected loops, and of each group that is not decided by the stalls themselves.
package struct WatchedTime: Sendable {
    /// Nil if not recorded.
    package private(set) var total: Duration?
    /// By the app, version, host, loop, system or device that reports are grouped by.
    private var byName: [String: Duration]?

    init(_ store: any QueryableStore, _ filter: ReportFilter, by key: GroupKey) throws {
        switch key {
        case .os, .device:
            try sum(store, filter, by: key) { key == .os ? $0.os : $0.device }
            return
        default: break
        }
        let loops = try store.watchedTimes(filter)
        guard !loops.isEmpty else { return }
        total = loops.reduce(.zero) { $0 + $1.watched }
        let name: (WatchedLoopTime) -> String
        switch key {
        case .app: name = { $0.app }
        case .version: name = { "\($0.app) \($0.version)" }
        case .host: name = { $0.host }
        case .loop: name = { $0.loop }
        case .signature, .family, .function, .inclusive, .cause, .os, .device: return
        }
        byName = loops.reduce(into: [:]) { $0[name($1), default: .zero] += $1.watched }
    }

    package init() {}

    /// By a fact that only process runs have: loop by loop.
    private mutating func sum(
        _ store: any QueryableStore, _ filter: ReportFilter, by key: GroupKey,
        _ fact: (ProcessRun) -> String?
    ) throws {
        let loops = try store.watchedLoops(filter, withLengths: false)
        guard !loops.isEmpty else { return }
        total = loops.reduce(.zero) { $0 + $1.watched }
        byName = loops.reduce(into: [:]) { sums, loop in
            let group = ReportGroup(fact: fact(loop.run), of: key)
            sums[group.title, default: .zero] += loop.watched
        }
    }

    /// Milliseconds lost in a group per watched hour, in watched loops; nil if watched time is unknown.
    func rate(of group: StallAggregate) -> Double? {
        guard let watched = byName.map({ $0[group.title] }) ?? total, watched > .zero else {
            return nil
        }
        return group.watched.total.milliseconds / (watched / .seconds(3600))
    }
}
