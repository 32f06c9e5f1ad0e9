// Decides which group a report belongs to. The rules are the caller's (`ReportGrouper`); they are evaluated once for
// stalls that show the same functions, since an evaluation costs a hundred times the budget of a report.

package import StallModel
package import StallQuery
package import StallStore

/// Decides reports' groups. When names or stacks have changed, `forget`.
package final class GroupDecider {
    /// The decision for one report.
    package struct Decision: Hashable {
        package var signature: Int64
        /// Every location on its stacks has been looked up.
        package var isNamed: Bool
    }

    package private(set) var grouper: any ReportGrouper
    private let connection: Connection
    private let number: (ReportGroup) throws -> Int64
    private var stacks: StackReader
    private var paths: [Int64: FunctionPath] = [:]
    private var groups: [Key: Int64] = [:]
    private var numbers: [ReportGroup: Int64] = [:]
    private var grouped: [GroupedKey: any GroupedStack] = [:]
    // Executables by small numbers, which are hashed faster; mostly it is the same as before.
    private var executables: [BuildID?: Int] = [:]
    private var lastExecutable: (buildID: BuildID?, number: Int)?

    private struct Key: Hashable {
        var path: Int64?
        var cause: CauseClass?
        var executable: Int
    }
    private struct GroupedKey: Hashable {
        var path: Int64
        var executable: Int
    }

    /// More than this is forgotten rather than held.
    private static let pathLimit = 200_000
    private static let groupedLimit = 20_000

    /// - Parameter number: Gives a group the number that decisions name it by.
    package init(
        _ connection: Connection, _ grouper: any ReportGrouper,
        number: @escaping (ReportGroup) throws -> Int64
    ) throws {
        self.grouper = grouper
        self.connection = connection
        self.number = number
        stacks = try StackReader(connection)
    }

    /// Decides by other rules from now on.
    package func use(_ grouper: any ReportGrouper) throws {
        guard grouper.rulesHash != self.grouper.rulesHash else { return }
        self.grouper = grouper
        try forget()
    }

    package func forget() throws {
        paths.removeAll(keepingCapacity: true)
        groups.removeAll(keepingCapacity: true)
        numbers.removeAll(keepingCapacity: true)
        grouped.removeAll(keepingCapacity: true)
        stacks = try StackReader(connection)
    }

    /// - Parameters:
    ///   - samples: With the store's numbers of stacks; late ones have no say.
    ///   - duration_ns: How long the stall lasted.
    package func decide(
        _ samples: [StoredSample], of duration_ns: Int64, cause: CauseClass?, executable: BuildID?
    ) throws -> Decision {
        if paths.count > Self.pathLimit { try forget() }
        var first: FunctionPath?
        var (isNamed, isOnePath) = (true, true)
        for sample in samples where !sample.isLate {
            guard let stack = sample.stack else { continue }
            let path = try path(ofStack: stack)
            isNamed = isNamed && path.isLookedUp
            isOnePath = isOnePath && path.hash == first?.hash ?? path.hash
            first = path
        }
        // Stacks of one path decide alike, whatever time each stands for.
        let key = Key(path: first?.hash, cause: cause, executable: number(of: executable))
        if isOnePath, let known = groups[key] {
            return Decision(signature: known, isNamed: isNamed)
        }
        let group = grouper.group(
            of: try grouped(samples, of: duration_ns, executable), cause: cause)
        let signature = try numbers[group] ?? number(group)
        numbers[group] = signature
        if isOnePath { groups[key] = signature }
        return Decision(signature: signature, isNamed: isNamed)
    }

    private func number(of executable: BuildID?) -> Int {
        if let lastExecutable, lastExecutable.buildID == executable { return lastExecutable.number }
        let number = executables[executable] ?? executables.count
        executables[executable] = number
        lastExecutable = (executable, number)
        return number
    }

    /// The stacks of samples that are not late, as the grouper sees them.
    private func grouped(
        _ samples: [StoredSample], of duration_ns: Int64, _ executable: BuildID?
    ) throws -> [(stack: any GroupedStack, weight: Duration)] {
        if grouped.count > Self.groupedLimit { grouped.removeAll(keepingCapacity: true) }
        let number = number(of: executable)
        return try zip(samples, samples.weights(in: duration_ns)).compactMap { sample, weight in
            guard !sample.isLate, let stack = sample.stack else { return nil }
            let key = GroupedKey(path: try path(ofStack: stack).hash, executable: number)
            var known = grouped[key]
            if known == nil, let frames = try stacks.frames(ofStack: stack), !frames.isEmpty {
                known = grouper.stack(frames, executable: executable)
                grouped[key] = known
            }
            return known.map { ($0, .nanoseconds(weight)) }
        }
    }

    private func path(ofStack stack: Int64) throws -> FunctionPath {
        if let path = paths[stack] { return path }
        let path = try stacks.path(ofStack: stack) ?? FunctionPath(hash: 0, isLookedUp: true)
        paths[stack] = path
        return path
    }
}
