// The lock holder of each group in a ranking, from the group's example report.

package import StallModel
package import StallQuery

/// The thread that held the lock for most of the stall's wait.
package struct NamedLockHolder: Hashable, Sendable {
    package var holder: LockHolder
    /// The app function on its stack, by the current rules; nil if there is none.
    package var function: String?
}

extension Ranking {
    /// Above this number of stalls, no report is searched just to name its lock holder.
    private static let holderLimit = 5000

    /// The holders by example report, for the first groups that wait for a lock.
    package func lockHolders(
        in store: any QueryableStore, limit: Int, rules: GroupingRules
    ) throws -> [UniqueID: NamedLockHolder] {
        guard overview.stallCount <= Self.holderLimit else { return [:] }
        return try groups.prefix(limit).filter { $0.cause == .lock }.reduce(into: [:]) {
            guard let example = $1.example else { return }
            $0[example] = try store.reports(idPrefix: example.description).first?
                .lockHolder(by: DefaultGrouper(rules: rules))
        }
    }
}

extension StallReport {
    /// The holder of the lock that the stall waited for longest, if known.
    fileprivate func lockHolder(by grouper: DefaultGrouper) -> NamedLockHolder? {
        guard let holder = cause?.holder else { return nil }
        let thread = threads.first { $0.role == .holder && $0.thread == holder.thread }
        return NamedLockHolder(
            holder: holder, function: thread.flatMap { appFunction(of: $0, by: grouper) })
    }

    /// The function that a group of another thread's stack would be named after; nil if it has no app function.
    package func appFunction(of thread: ThreadSnapshot, by grouper: DefaultGrouper) -> String? {
        guard !thread.frames.isEmpty else { return nil }
        let signature = grouper.signature(
            of: [(thread.frames, .seconds(1))], executable: run.buildID)
        return signature.isWithoutAppFrame ? nil : signature.keyFrames.first
    }

    /// The group by its samples, except late ones.
    package func signature(by grouper: DefaultGrouper) -> Signature {
        grouper.signature(
            of: samples.filter { !$0.isLate && !$0.frames.isEmpty }.map { ($0.frames, $0.weight) },
            executable: run.buildID)
    }
}
