// The central store of a collector: lines are read on any thread, and written through `Ingest` on one.

internal import Glibc
internal import StallAnalysis
internal import StallFormats
internal import StallIngest
package import StallModel
import StallQuery
package import StallStore

/// A central store in SQLite.
package final class SQLiteStorage: PushStorage {
    /// Lines that were read, for a batch to write.
    package struct Rows: Sendable {
        var rows: [(line: Int, row: PortableRow)] = []
        /// How many lines are of kinds or versions that are not known here.
        var unknownCount = 0
        var apps: Set<String> = []
        var senders: Set<PushSender> = []
    }

    private let ingest: Ingest
    package let progress: StatementProgress
    package var probeWrites: Bool { true }
    private let path: String
    /// The apps that stores have reports of, as far as they were looked up.
    private var apps: [UniqueID: Set<String>] = [:]

    /// Opens the store; creates or migrates it where needed. `stallwatch.rules` beside it is for a new store.
    ///
    /// - Throws: The error of the store or of the file of rules.
    package convenience init(_ path: String) throws {
        try self.init(path, rules: .of(store: path))
    }

    /// - Parameter rules: Those of a store that has none yet.
    /// - Parameter holdsOnlyNews: The store begins with positions, and its reports are then copied elsewhere.
    init(
        _ path: String, rules: GroupingRules, holdsOnlyNews: Bool = false,
        progress: StatementProgress = StatementProgress()
    ) throws {
        (self.path, self.progress) = (path, progress)
        Ingest.prepareProcess()
        ingest = try Ingest(
            into: path, grouper: DefaultGrouper(rules: rules), holdsOnlyNews: holdsOnlyNews)
        ingest.note(progress)
        // Senders wait for an answer, and come back.
        ingest.wait(.milliseconds(2500))
    }

    package static func read(
        _ lines: [UInt8], of store: UniqueID, for token: CollectorToken
    ) -> Result<Rows, PushRefusal> {
        var (feed, rows) = (ReportLines(bytes: lines), Rows())
        var (faults, count) = ([LineFault](), 0)
        func refuse(_ fault: LineFault) {
            count += 1
            if faults.count < PushedBatchResult.Refused.namedLimit { faults.append(fault) }
        }
        while !feed.hasFailed {
            do throws(LineFault) {
                guard let row = try feed.next() else { break }
                if case .unknown = row {
                    rows.unknownCount += 1
                    continue
                }
                guard row.store == store else {
                    refuse(LineFault(line: feed.lineNumber, reason: "is not of the store \(store)"))
                    continue
                }
                if let run = row.run, rows.senders.count < 100 {
                    rows.senders.insert(PushSender(host: run.host, app: run.app))
                }
                if let app = row.run?.app, rows.apps.insert(app).inserted, !token.allows(app: app) {
                    return .failure(PushRefusal(.foreign(Self.foreign(app, feed.lineNumber))))
                }
                rows.rows.append((feed.lineNumber, row))
            } catch { refuse(error) }
        }
        if count > 0 { return .failure(PushRefusal(.refused(faults, count: count))) }
        return .success(rows)
    }

    /// The outcome for a store that the token is not for.
    static func foreign(_ app: String) -> PushOutcome { .foreign(foreign(app, 0)) }

    private static func foreign(_ app: String, _ line: Int) -> LineFault {
        LineFault(line: line, reason: "is of the app '\(app)', which the token is not for")
    }

    package func position(of store: UniqueID) throws -> PushPosition {
        try ingest.expectInPlace()
        let position = try ingest.position(of: store)
        return PushPosition(
            through: position.through, last: position.last.map { ($0.seq, $0.id) })
    }

    package func take(
        _ batches: [(range: PushRange, rows: Rows, token: CollectorToken)]
    ) -> [PushOutcome] {
        var (outcomes, rest) = ([PushOutcome](), batches[...])
        while !rest.isEmpty {
            // The apps of a store can change with each batch of it.
            var stores: Set<UniqueID> = []
            let together = rest.prefix { stores.insert($0.range.store).inserted }
            outcomes += commitInPlace(together)
            rest = rest.dropFirst(together.count)
        }
        return outcomes
    }

    /// Takes batches, and acknowledges only what is in the file that the path names.
    private func commitInPlace(
        _ batches: ArraySlice<(range: PushRange, rows: Rows, token: CollectorToken)>
    ) -> [PushOutcome] {
        do throws(StoreError) {
            try ingest.expectInPlace()
            let outcomes = commit(batches)
            try ingest.expectInPlace()
            return outcomes
        } catch { return batches.map { _ in .unavailable("\(error)") } }
    }

    /// Takes batches of different stores in one transaction.
    private func commit(
        _ batches: ArraySlice<(range: PushRange, rows: Rows, token: CollectorToken)>
    ) -> [PushOutcome] {
        var outcomes = batches.map { batch -> PushOutcome? in
            do throws(StoreError) {
                return try foreignApp(in: batch.range.store, for: batch.token)
                    .map { PushOutcome.foreign(Self.foreign($0, 0)) }
            } catch { return .unavailable("\(error)") }
        }
        let own = zip(outcomes.indices, batches).filter { outcomes[$0.0] == nil }
        let results = ingest.take(
            own.map { _, batch in
                PushedBatch(
                    store: batch.range.store, from: batch.range.from, through: batch.range.through,
                    rows: RowsRead(rest: batch.rows.rows[...]))
            })
        for ((index, batch), result) in zip(own, results) {
            outcomes[index] = outcome(result, of: batch.range.store, batch.rows)
        }
        return outcomes.map { $0 ?? .unavailable("not written") }
    }

    private func outcome(
        _ result: Result<PushedBatchResult, StoreError>, of store: UniqueID, _ rows: Rows
    ) -> PushOutcome {
        switch result {
        case .success(.taken(let taken)):
            apps[store, default: []].formUnion(rows.apps)
            return .taken(
                through: taken.through, added: taken.added, changed: taken.changed,
                unknown: rows.unknownCount)
        case .success(.gap(let through)): return .gap(through: through)
        case .success(.refused(let refused)):
            return .refused(refused.lines, count: refused.count)
        case .failure(let error): return .unavailable("\(error)")
        }
    }

    /// An app that the store has reports of and the token is not for. A sender may add lines of its own app to its own
    /// store, and may not move the position of another sender's store: rows that were not sent yet would then never be.
    private func foreignApp(
        in store: UniqueID, for token: CollectorToken
    ) throws(StoreError) -> String? {
        if apps[store] == nil {
            if apps.count >= 100_000 { apps = [:] }
            apps[store] = try ingest.apps(of: store)
        }
        return apps[store]?.first { !token.allows(app: $0) }
    }

    package static func senders(of rows: Rows) -> Set<PushSender> { rows.senders }

    package func lastPushes() throws -> [PushSender: Double] {
        Self.lastPushes(try ingest.watchedHosts())
    }

    static func lastPushes(_ hosts: [WatchedHost]) -> [PushSender: Double] {
        let times = hosts.map {
            (PushSender(host: $0.host, app: $0.app), Double($0.last.microseconds) / 1e6)
        }
        return Dictionary(times, uniquingKeysWith: max)
    }

    package func probe() throws {
        try ingest.expectInPlace()
        try ingest.probe()
        try RoomProbe.write(beside: path)
    }

    package func close() { try? ingest.close() }
}

/// Rows from memory.
private struct RowsRead: ReportFeed {
    var rest: ArraySlice<(line: Int, row: PortableRow)>
    private(set) var lineNumber = 0
    var byteCount: Int { 0 }
    var hasFailed: Bool { false }

    init(rest: ArraySlice<(line: Int, row: PortableRow)>) { self.rest = rest }

    mutating func next() throws(LineFault) -> PortableRow? {
        guard let (line, row) = rest.popFirst() else { return nil }
        lineNumber = line
        return row
    }
}

extension PortableRow {
    /// The process run that it is of; nil for a location in a binary that is the same in every run.
    fileprivate var run: ProcessRun? {
        switch self {
        case .report(let row): row.report.run
        case .exposure(let row): row.exposure.run
        case .suppression(let row): row.stalls.run
        case .loss(let row): row.run
        case .run(let row): row.run
        case .location(let row): row.run
        case .watchedLoop(let row): row.run
        case .unknown: nil
        }
    }
}
