// The store of a collector on several machines. Batches of several senders are imported into a private store, as an
// ingest does, and copied from there: an acknowledgement waits for the last shard.

internal import StallAnalysis
import StallClickHouse
internal import StallIngest
package import StallModel
package import StallStore

/// A central store in ClickHouse.
package final class ClusterStorage: PushStorage {
    package typealias Rows = SQLiteStorage.Rows

    package let progress = StatementProgress()
    /// It asks for a position.
    package var probeWrites: Bool { false }
    private let staged: StagedIngest
    private let positions: SourcePositions
    /// The rules of the cluster, as far as is known.
    private var grouper = DefaultGrouper(rules: .builtIn)
    private let seconds: () -> Double
    /// The apps that stores have rows of, as far as they were looked up.
    private var apps: [UniqueID: Set<String>] = [:]
    /// When the days that changed were added up last.
    private var lastRenewal: Double

    /// Until the days that changed are added up again, questions about them read their reports.
    private static let secondsBetweenRenewals = 60.0

    /// Brings the cluster to the newest schema where needed.
    ///
    /// - Parameters:
    ///   - address: `clickhouse://user@host:port/database?cluster=name`.
    ///   - seconds: A clock that does not jump.
    package convenience init(_ address: String, seconds: @escaping () -> Double) throws {
        let cluster = try ClickHouseCluster(ClickHouseServer(ClickHouseAddress(address)))
        try cluster.migrate()
        self.init(StagedIngest(cluster), SourcePositions(cluster), seconds: seconds)
    }

    /// - Parameter staged: Writes to a cluster of the newest schema, of which the positions are.
    init(
        _ staged: StagedIngest, _ positions: SourcePositions, seconds: @escaping () -> Double
    ) {
        Ingest.prepareProcess()
        (self.staged, self.positions) = (staged, positions)
        (self.seconds, lastRenewal) = (seconds, seconds())
    }

    /// Whether a store's name is the address of a cluster, and not a path.
    package static func isAddress(_ store: String) -> Bool { ClickHouseAddress.isAddress(store) }

    package static func read(
        _ lines: [UInt8], of store: UniqueID, for token: CollectorToken
    ) -> Result<Rows, PushRefusal> {
        SQLiteStorage.read(lines, of: store, for: token)
    }

    package func position(of store: UniqueID) throws -> PushPosition {
        let known = try positions.read(of: [store]).first { $0.store == store }
        return PushPosition(through: known?.revision ?? 0, last: known?.last)
    }

    package func take(
        _ batches: [(range: PushRange, rows: Rows, token: CollectorToken)]
    ) -> [PushOutcome] {
        do {
            try lookUpApps(of: batches.map(\.range.store))
            var outcomes = batches.map { foreign($0.range.store, $0.token) }
            let own = batches.indices.filter { outcomes[$0] == nil }
            if !own.isEmpty {
                let taken = try copy(own.map { batches[$0] })
                for (index, outcome) in zip(own, taken) { outcomes[index] = outcome }
            }
            for index in own {
                guard case .taken? = outcomes[index] else { continue }
                apps[batches[index].range.store, default: []].formUnion(batches[index].rows.apps)
            }
            renewNowAndThen()
            return outcomes.map { $0 ?? .unavailable("not written") }
        } catch {
            // Some of it may be in the cluster. It comes again, and then replaces itself.
            return batches.map { _ in .unavailable("\(error)") }
        }
    }

    private func copy(
        _ batches: [(range: PushRange, rows: Rows, token: CollectorToken)]
    ) throws -> [PushOutcome] {
        do { return try copyGrouped(batches) } catch let error as ClickHouseError {
            // `regroup` has given the cluster other rules, before or just now.
            guard case .otherRules(_, let hash) = error,
                let text = try staged.rulesTexts.text(of: hash),
                let rules = try? GroupingRules(text, file: "the rules of the cluster"),
                rules.hash == hash
            else { throw error }
            grouper = DefaultGrouper(rules: rules)
            return try copyGrouped(batches)
        }
    }

    private func copyGrouped(
        _ batches: [(range: PushRange, rows: Rows, token: CollectorToken)]
    ) throws -> [PushOutcome] {
        try staged.run(of: Array(Set(batches.map(\.range.store))), renews: false, grouper: grouper)
        { path in
            let storage = try SQLiteStorage(
                path, rules: grouper.rules, holdsOnlyNews: true, progress: progress)
            defer { storage.close() }
            return storage.take(batches)
        }.answer
    }

    /// Sends one query for all stores that were not looked up yet.
    private func lookUpApps(of stores: [UniqueID]) throws {
        if apps.count >= 100_000 { apps = [:] }
        let unknown = Set(stores).filter { apps[$0] == nil }
        guard !unknown.isEmpty else { return }
        apps.merge(try positions.apps(of: Array(unknown))) { known, _ in known }
    }

    /// The outcome where the store has rows of an app that the token is not for.
    private func foreign(_ store: UniqueID, _ token: CollectorToken) -> PushOutcome? {
        apps[store]?.first { !token.allows(app: $0) }.map { SQLiteStorage.foreign($0) }
    }

    /// Totals are derived from stored rows: a sender waits for them only now and then, and gets no error when they
    /// fail.
    private func renewNowAndThen() {
        guard seconds() - lastRenewal >= Self.secondsBetweenRenewals else { return }
        try? staged.renew()
        lastRenewal = seconds()
    }

    package static func senders(of rows: Rows) -> Set<PushSender> { rows.senders }

    package func lastPushes() throws -> [PushSender: Double] {
        SQLiteStorage.lastPushes(try positions.watchedHosts())
    }

    package func probe() throws { _ = try positions.read(of: [UniqueID((0, 0))]) }

    package func close() { try? staged.renew() }
}
