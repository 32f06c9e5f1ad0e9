// Who held the lock, for rankings: told by the report that shows a group best.

internal import StallAnalysis
internal import StallModel
internal import StallStore

extension Ranking {
    /// From so many stalls on, a report is not looked for only to say who held its lock.
    private static let holderLimit = 5000

    /// `held by 'compactor' in compactDatabase()`, by the example of each of the first groups that wait for a lock.
    func holders(in store: ReportStore, limit: Int) throws -> [UniqueID: String] {
        guard overview.stallCount <= Self.holderLimit else { return [:] }
        return try hotspots.prefix(limit).filter { $0.cause == .lock }.reduce(into: [:]) {
            guard let example = $1.example else { return }
            $0[example] = try store.report(idPrefix: example.description).holderClause
        }
    }
}

extension StallReport {
    /// Who held the lock it waited for longest, when that is known.
    fileprivate var holderClause: String? {
        guard let holder = cause?.holder else { return nil }
        let name = holder.name.map { "'\($0)'" } ?? "thread \(holder.thread.rawValue)"
        let thread = threads.first { $0.role == .holder && $0.thread == holder.thread }
        let place = thread.flatMap { appFrame(of: $0) }.map { " in \($0)" } ?? ""
        return (holder.isDeadlock ? "deadlock with " : "held by ") + name + place
    }
}
