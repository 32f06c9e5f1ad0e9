// The rows of the dimensions that reports of one roll-up share besides their group.

internal import StallModel
internal import StallStore

/// Stores each combination of dimensions once. Works within the transaction of its caller; after a rollback,
/// `forget`.
final class RollUpDimensions {
    private let find, add, findLoop, findWatched, findHost, addHost: Statement
    private var loops: [Int64: Loop] = [:]
    private var ids: [Key: Int64] = [:]
    /// By loop.
    private var hosts: [Int64: Int64] = [:]

    private struct Key: Hashable {
        var source, loop: Int64
        var verdict: StallVerdict
        var cause: CauseClass?
    }
    /// The dimensions of a loop's row. A class, so that reading it copies nothing.
    final class Loop {
        let app: String
        let version: String
        let buildID: BuildID?
        let name: String
        let host: String

        fileprivate init(_ row: Statement) {
            app = row.text()
            version = row.text()
            buildID = row.optionalBytes().map(BuildID.init)
            name = row.text()
            host = row.text()
        }
    }

    init(_ connection: Connection) throws {
        find = try connection.prepare(
            """
            select id from cohort where app = ? and version = ? and ifnull(build_id, x'') = ?
                and loop = ? and verdict = ? and ifnull(cause, -1) = ? and is_watched = ?
            """)
        add = try connection.prepare(
            """
            insert into cohort (app, version, build_id, loop, verdict, cause, is_watched)
            values (?, ?, ?, ?, ?, ?, ?)
            """)
        findWatched = try connection.prepare(
            "select count(*) from watched_loop where source = ? and loop = ?")
        findHost = try connection.prepare("select id from host where name = ?")
        addHost = try connection.prepare("insert into host (name) values (?)")
        findLoop = try connection.prepare(
            """
            select process_run.app, process_run.version, process_run.build_id, loop.name,
                process_run.host
            from loop join process_run on process_run.id = loop.run where loop.id = ?
            """)
    }

    func forget() {
        hosts.removeAll(keepingCapacity: true)
        loops.removeAll(keepingCapacity: true)
        ids.removeAll(keepingCapacity: true)
    }

    /// The dimension row that a report counts in.
    func id(of report: CountedReport) throws -> Int64 {
        let (source, loop) = (report.entry.source, report.loop)
        let key = Key(source: source, loop: loop, verdict: report.verdict, cause: report.cause)
        if let id = ids[key] { return id }
        let facts = try self.loop(loop)
        let (verdict, cause) = (
            Int64(report.verdict.rawValue), report.cause.map { Int64($0.rawValue) }
        )
        let isWatched = try findWatched.number(source, loop)
        let id =
            try find.found(
                facts.app, facts.version, facts.buildID?.bytes ?? [], facts.name, verdict,
                cause ?? -1, isWatched)
            ?? add.insert(
                facts.app, facts.version, facts.buildID?.bytes, facts.name, verdict, cause,
                isWatched)
        ids[key] = id
        return id
    }

    /// The row of the host that a loop was on.
    func host(ofLoop loop: Int64) throws -> Int64 {
        if let known = hosts[loop] { return known }
        let name = try self.loop(loop).host
        let id = try findHost.found(name) ?? addHost.insert(name)
        hosts[loop] = id
        return id
    }

    /// The row of a host; nil for one of which no report was counted.
    func host(named name: String) throws -> Int64? { try findHost.found(name) }

    /// Loops of a source are watched from now on.
    func forget(source: Int64, loops: Set<Int64>) {
        ids = ids.filter { $0.key.source != source || !loops.contains($0.key.loop) }
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
