// How long the loops were watched that a ranking speaks of: what its rates are given per.

internal import StallAnalysis
internal import StallModel
internal import StallStore

/// The watched time of all loops that a filter selects, and of each group that is made by more than functions.
struct WatchedTime {
    /// Nil when the store does not tell.
    private(set) var total: Duration?
    /// By the name of the app, version, host or loop that makes a group.
    private var byName: [String: Duration]?

    init(_ store: ReportStore, _ filter: ReportFilter, by key: GroupKey) throws {
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

    init() {}

    /// The milliseconds that the watched loops lost in a group per watched hour; nil when that is not known.
    func rate(of hotspot: Hotspot) -> Double? {
        guard let watched = byName.map({ $0[hotspot.title] }) ?? total, watched > .zero else {
            return nil
        }
        return hotspot.watched.total.milliseconds / (watched / .seconds(3600))
    }
}

extension Duration {
    /// ` in 26.1 watched hours`, ` in 25 s watched`.
    var watchedClause: String {
        let hours = self / .seconds(3600)
        return hours >= 1 ? " in \(hours.short) watched hours" : " in \(compact) watched"
    }
}

/// Says of how many stalls the rates are not, because nobody recorded how long their loops were watched; nil when that is
/// known of all or of none.
func unwatchedSentence(_ watched: StallTotals, ofCount count: Int, lost: Duration) -> String? {
    guard count > watched.count else { return nil }
    return
        "Rates are of the \(counted(watched.count, "stall")) (\(watched.total.compact) lost) in loops whose watched time "
        + "is recorded; of the other \(counted(count - watched.count, "stall")) "
        + "(\((lost - watched.total).compact)) it is not."
}
