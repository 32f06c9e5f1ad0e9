// What reports of one roll-up have in common besides their group.

internal import StallModel

/// The cohort of a report: its build, its loop's name, its verdict and its cause.
struct Cohort: Hashable {
    var app: String
    var version: String
    var buildID: BuildID?
    var loop: String
    var verdict: StallVerdict
    var cause: CauseClass?
}

extension Cohort {
    /// The columns that `init(_:at:)` reads, in its order.
    static let columns = "app, version, build_id, loop, verdict, cause"

    init(_ row: Statement, at first: CInt) throws(StoreError) {
        self.init(
            app: row.text(at: first), version: row.text(at: first + 1),
            buildID: row.optionalBytes(at: first + 2).map(BuildID.init),
            loop: row.text(at: first + 3), verdict: try row.value(at: first + 4),
            cause: row.isNull(at: first + 5) ? nil : try row.value(at: first + 5))
    }
}

/// Gives each cohort its row. Works within the transaction of its caller; after a rollback,
/// `forget`.
final class Cohorts {
    private let find, add, findLoop: Statement
    private var loops: [Int64: Loop] = [:]
    private var ids: [Key: Int64] = [:]

    private struct Key: Hashable {
        var loop: Int64
        var verdict: StallVerdict
        var cause: CauseClass?
    }
    /// What a loop's row leads to. A class, so that a look at it copies nothing.
    final class Loop {
        let app: String
        let version: String
        let buildID: BuildID?
        let name: String

        fileprivate init(_ row: Statement) {
            app = row.text(at: 0)
            version = row.text(at: 1)
            buildID = row.optionalBytes(at: 2).map(BuildID.init)
            name = row.text(at: 3)
        }
    }

    init(_ connection: Connection) throws {
        find = try connection.prepare(
            """
            select id from cohort where app = ? and version = ? and ifnull(build_id, x'') = ?
                and loop = ? and verdict = ? and ifnull(cause, -1) = ?
            """)
        add = try connection.prepare(
            """
            insert into cohort (app, version, build_id, loop, verdict, cause)
            values (?, ?, ?, ?, ?, ?)
            """)
        findLoop = try connection.prepare(
            """
            select process_run.app, process_run.version, process_run.build_id, loop.name
            from loop join process_run on process_run.id = loop.run where loop.id = ?
            """)
    }

    func forget() {
        loops.removeAll(keepingCapacity: true)
        ids.removeAll(keepingCapacity: true)
    }

    /// - Parameter loop: The number of a `loop` row.
    func id(loop: Int64, verdict: StallVerdict, cause: CauseClass?) throws -> Int64 {
        let key = Key(loop: loop, verdict: verdict, cause: cause)
        if let id = ids[key] { return id }
        let facts = try self.loop(loop)
        let (verdict, cause) = (Int64(verdict.rawValue), cause.map { Int64($0.rawValue) })
        let id =
            try find.integer(
                facts.app, facts.version, facts.buildID?.bytes ?? [], facts.name, verdict,
                cause ?? -1)
            ?? add.insert(
                facts.app, facts.version, facts.buildID?.bytes, facts.name, verdict, cause)
        ids[key] = id
        return id
    }

    /// The build of the process that a loop was in.
    func loop(_ id: Int64) throws -> Loop {
        if let loop = loops[id] { return loop }
        try findLoop.bind(id)
        guard try findLoop.step() else { throw findLoop.damage("a report of no loop") }
        let loop = Loop(findLoop)
        findLoop.reset()
        loops[id] = loop
        return loop
    }
}
