// Who held the lock, for rankings: told by the report that shows a group best.

package import StallModel

/// Who held the lock that a stall waited for longest.
package struct NamedLockHolder: Hashable, Sendable {
    package var holder: LockHolder
    /// The app's function on its stack, under the rules in force; nil when there is none.
    package var function: String?
}

extension Ranking {
    /// From so many stalls on, a report is not looked for only to say who held its lock.
    private static let holderLimit = 5000

    /// By the example of each of the first groups that wait for a lock.
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
    /// Who held the lock it waited for longest, when that is known.
    fileprivate func lockHolder(by grouper: DefaultGrouper) -> NamedLockHolder? {
        guard let holder = cause?.holder else { return nil }
        let thread = threads.first { $0.role == .holder && $0.thread == holder.thread }
        return NamedLockHolder(
            holder: holder, function: thread.flatMap { appFunction(of: $0, by: grouper) })
    }

    /// The function that a group of another thread's stack would be named by; nil when none of the app's is on it.
    package func appFunction(of thread: ThreadSnapshot, by grouper: DefaultGrouper) -> String? {
        guard !thread.frames.isEmpty else { return nil }
        let signature = grouper.signature(
            of: [(thread.frames, .seconds(1))], executable: run.buildID)
        return signature.isWithoutAppFrame ? nil : signature.keyFrames.first
    }

    /// The group that its samples put it in; late ones have no say.
    package func signature(by grouper: DefaultGrouper) -> Signature {
        grouper.signature(
            of: samples.filter { !$0.isLate && !$0.frames.isEmpty }.map { ($0.frames, $0.weight) },
            executable: run.buildID)
    }
}
