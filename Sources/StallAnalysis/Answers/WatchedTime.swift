// How long the loops were watched that a ranking speaks of: what its rates are given per.

internal import StallModel

/// The watched time of all loops that a filter selects, and of each group that is made by more than functions.
package struct WatchedTime: Sendable {
    /// Nil when the store does not tell.
    package private(set) var total: Duration?
    /// By the name of the app, version, host or loop that makes a group.
    private var byName: [String: Duration]?

    init(_ store: any QueryableStore, _ filter: ReportFilter, by key: GroupKey) throws {
        let loops = try store.watchedLoops(filter, withLengths: false)
        guard !loops.isEmpty else { return }
        total = loops.reduce(.zero) { $0 + $1.watched }
        let name: (LoopExposure) -> String
        switch key {
        case .app: name = { $0.run.app }
        case .version: name = { "\($0.run.app) \($0.run.version)" }
        case .host: name = { $0.run.host }
        case .loop: name = { $0.loop }
        case .signature, .family, .function, .inclusive, .cause: return
        }
        byName = loops.reduce(into: [:]) { $0[name($1), default: .zero] += $1.watched }
    }

    package init() {}

    /// The milliseconds that the watched loops lost in a group per watched hour; nil when that is not known.
    func rate(of group: StallAggregate) -> Double? {
        guard let watched = byName.map({ $0[group.title] }) ?? total, watched > .zero else {
            return nil
        }
        return group.watched.total.milliseconds / (watched / .seconds(3600))
    }
}
