// The changes of a store since a revision, in their order, for a sender. The position is kept by the receiver: nothing
// is noted in the store, which may be read while its agent writes it.

package import StallModel
package import StallQuery
package import StallStore

/// Where in the changes of a source the reading is.
package struct ChangePosition: Hashable, Sendable {
    /// Every row that changed last at this revision or before was passed.
    package var through: Int64
    /// Of the next revision, rows up to this one were passed, too.
    fileprivate var inside: ChangeKey?

    package init(through: Int64) { self.through = through }

    /// Behind the last row that was passed, before the next one.
    fileprivate func behind(_ last: ChangeKey?, before next: ChangeKey) -> ChangePosition {
        guard let last else { return self }
        guard last.revision == next.revision else {
            return ChangePosition(through: max(through, last.revision))
        }
        var position = ChangePosition(through: max(through, last.revision - 1))
        position.inside = last
        return position
    }
}

/// Rows of one revision in an order: only names of locations share one.
struct ChangeKey: Hashable, Comparable {
    static let (location, watchedLoop, exposure): (Int64, Int64, Int64) = (0, 1, 2)
    static let (suppression, loss, report): (Int64, Int64, Int64) = (3, 4, 5)

    var revision: Int64
    /// Kind of the row, and its numbers in the store.
    var kind: Int64
    var numbers: [Int64]

    static func < (left: ChangeKey, right: ChangeKey) -> Bool {
        if left.revision != right.revision { return left.revision < right.revision }
        if left.kind != right.kind { return left.kind < right.kind }
        return left.numbers.lexicographicallyPrecedes(right.numbers)
    }
}

/// A source of a store: a store that its rows were first written to.
package struct ChangeSource: Hashable, Sendable {
    package var store: UniqueID
    /// The last revision that it gave out, or that was imported.
    package var revision: Int64
    /// Some of its rows came as lines: then the revision does not show which ones are stored.
    package var hasLines: Bool
    /// The last of the store: locations without a known source count as its own.
    fileprivate var isLast = false
    fileprivate(set) var id: Int64
    /// Names that changed behind it, up to the revision, are its own.
    fileprivate var namesBehind: Int64
}

extension ReportStore {
    /// The sources of the store.
    package func changeSources() throws(StoreError) -> [ChangeSource] {
        try answer { connection in
            let rows = try connection.prepare(
                "select id, store, revision, line_count from source order by id")
            var (sources, last) = ([ChangeSource](), Int64(-1))
            while try rows.step() {
                let (id, store) = (try rows.integer(), try rows.uniqueID())
                let revision = try rows.limited(0...ValueLimits.revision, "revision")
                sources.append(
                    ChangeSource(
                        store: store, revision: revision, hasLines: try rows.integer() != 0, id: id,
                        namesBehind: last))
                last = max(last, revision)
            }
            if !sources.isEmpty { sources[sources.count - 1].isLast = true }
            return sources
        }
    }

    /// The id of a source's report; nil where there is none, or no more.
    package func reportID(of source: ChangeSource, seq: Int64) throws(StoreError) -> UniqueID? {
        try answer { connection in
            let rows = try connection.prepare("select id from report where source = ? and seq = ?")
            try rows.bind(source.id, seq)
            defer { rows.reset() }
            return try rows.step() ? try rows.uniqueID() : nil
        }
    }

    /// Passes the rows of a source that changed behind a position, in the order of their changes, until `body` returns
    /// that it has enough. Each process run comes before its first row. One snapshot: `body` must not wait.
    ///
    /// - Parameters:
    ///   - runs: The runs that were passed before; those that are passed now are added.
    ///   - body: Says whether it took the row; the position ends before a row that it did not take.
    /// - Returns: The position behind the rows that were taken; `isAtEnd` when no more came.
    package func forEachChange(
        of source: ChangeSource, behind position: ChangePosition, runs: inout Set<UniqueID>,
        _ body: (PortableRow) throws -> Bool
    ) throws -> (position: ChangePosition, isAtEnd: Bool) {
        var (result, seen) = ((position: position, isAtEnd: true), runs)
        try walk { connection in
            let reader = try StoreRowReader(connection)
            let keys = try ChangeKeys(connection, source, behind: position, isAgent: role == .agent)
            var last: ChangeKey? = position.inside
            while let key = try keys.next() {
                guard let row = try reader.row(key, source) else { continue }
                if let run = try reader.runNumber(of: key, source) {
                    let id = try reader.run(run).id
                    if !seen.contains(id) {
                        guard try body(.run(reader.run(run, of: source.store))) else {
                            result = (position.behind(last, before: key), false)
                            return
                        }
                        seen.insert(id)
                    }
                }
                guard try body(row) else {
                    result = (position.behind(last, before: key), false)
                    return
                }
                last = key
            }
            result.position = ChangePosition(through: max(position.through, source.revision))
        }
        runs = seen
        return result
    }

    /// The open reports of a source whose process is known to be gone, each with its end. Their own store has not
    /// recorded it yet, so that they have no revision that would be new.
    package func abandonedReports(of source: ChangeSource) throws(StoreError) -> [PortableReport] {
        guard role == .agent else { return [] }
        return try answer { connection in
            let here = ProcessLife.current()
            let reader = try StoreRowReader(connection)
            return try OpenReports(connection).of(source.id).compactMap { open in
                guard let end = open.end(in: path, here) else { return nil }
                return try reader.report(source: source.id, seq: open.seq)?.ended(end)
            }
        }
    }
}

/// The keys of changed rows, merged from all tables.
private final class ChangeKeys {
    private var heads: [(key: ChangeKey, rows: Statement)] = []
    private let behind: ChangeKey
    private let numberCounts: [Int64: CInt] = [
        ChangeKey.location: 1, ChangeKey.exposure: 1, ChangeKey.suppression: 3, ChangeKey.loss: 2,
        ChangeKey.report: 1, ChangeKey.watchedLoop: 1,
    ]

    init(
        _ connection: Connection, _ source: ChangeSource, behind position: ChangePosition,
        isAgent: Bool
    ) throws {
        // Rows without a revision come first.
        let start = position.through == 0 ? -1 : position.through
        behind = position.inside ?? ChangeKey(revision: start, kind: .max, numbers: [])
        func add(_ kind: Int64, _ sql: String, _ values: [any SQLValue]) throws {
            let rows = try connection.prepare(sql)
            try rows.bind(all: values)
            if let key = try next(rows, kind) { heads.append((key, rows)) }
        }
        let of: [any SQLValue] = [source.id, position.through + 1, source.revision]
        // A source of lines has rows of any revision: all of them are sent each time.
        let all: [any SQLValue] = source.hasLines ? [source.id, Int64.min, Int64.max] : of
        try add(
            ChangeKey.exposure,
            """
            select revision, loop from exposure where source = ? and revision between ? and ?
            order by revision, loop
            """, all)
        try add(
            ChangeKey.suppression,
            """
            select revision, loop, place, reason from suppression
            where source = ? and revision between ? and ? order by revision, loop, place, reason
            """, all)
        try add(
            ChangeKey.loss,
            """
            select revision, run, reason from loss
            where source = ? and revision between ? and ? order by revision, run, reason
            """, all)
        try add(
            ChangeKey.report,
            """
            select revision, seq from report where source = ? and revision between ? and ?
                \(isAgent ? "and signature is null" : "") order by revision, seq
            """, all)
        if isAgent {
            let first = max(position.through, source.namesBehind)
            try add(
                ChangeKey.location,
                """
                select revision, id from location where detail > 0 and revision > ?
                    and revision <= ? order by revision, id
                """, [first, source.isLast ? Int64.max : source.revision])
        } else if position.through == 0 || source.hasLines {
            // A central store keeps no revision of names: they go with the first rows.
            try add(
                ChangeKey.location,
                """
                select 0, id from location where detail > 0
                    and ifnull(nullif(namer, -1), (select max(id) from source)) = ? order by id
                """, [source.id])
            try add(
                ChangeKey.watchedLoop,
                "select 0, loop from watched_loop where source = ? order by loop", [source.id])
        }
    }

    func next() throws -> ChangeKey? {
        guard let index = heads.indices.min(by: { heads[$0].key < heads[$1].key }) else {
            return nil
        }
        let key = heads[index].key
        if let following = try next(heads[index].rows, key.kind) {
            heads[index].key = following
        } else {
            heads.remove(at: index)
        }
        return key
    }

    private func next(_ rows: Statement, _ kind: Int64) throws -> ChangeKey? {
        while try rows.step() {
            let count = numberCounts[kind] ?? 1
            let key = ChangeKey(
                revision: try rows.integer(at: 0), kind: kind,
                numbers: try (1...count).map { try rows.integer(at: $0) })
            if key > behind { return key }
        }
        return nil
    }
}

extension StoreRowReader {
    /// The row of a key; nil where it is gone, or of a kind that is not known here.
    fileprivate func row(_ key: ChangeKey, _ source: ChangeSource) throws -> PortableRow? {
        let numbers = key.numbers
        switch key.kind {
        case ChangeKey.location: return try location(numbers[0], of: source.store)
        case ChangeKey.watchedLoop: return try watchedLoop(numbers[0], source: source.id)
        case ChangeKey.exposure:
            return try exposure(source: source.id, revision: key.revision, loop: numbers[0])
        case ChangeKey.suppression:
            return try suppression(
                source: source.id, loop: numbers[0], place: numbers[1], reason: numbers[2])
        case ChangeKey.loss:
            return try loss(source: source.id, run: numbers[0], reason: numbers[1])
        default: return try report(source: source.id, seq: numbers[0]).map(PortableRow.report)
        }
    }

    /// The run of a key's row, by its number; nil for a location.
    fileprivate func runNumber(of key: ChangeKey, _ source: ChangeSource) throws -> Int64? {
        switch key.kind {
        case ChangeKey.location: nil
        case ChangeKey.loss: key.numbers[0]
        case ChangeKey.report: try runNumber(ofReport: key.numbers[0], source: source.id)
        default: try runNumber(ofLoop: key.numbers[0])
        }
    }
}

extension PortableReport {
    /// The report with this end.
    fileprivate func ended(_ end: OpenStallEnd) -> PortableReport {
        var report = self
        report.report.outcome = end.outcome
        report.report.duration = end.duration_ns.map { .nanoseconds($0) } ?? self.report.duration
        return report
    }
}
