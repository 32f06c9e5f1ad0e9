// Takes reports into a cluster by way of a private SQLite store: the same import as into a central store of one file, and
// then one copy of what came. Between the two stands the position of each source, which the private store begins with, so
// that only what is new is read.

internal import Glibc
package import StallModel
package import StallQuery
internal import StallStore

/// Imports into a cluster.
package struct StagedIngest {
    private let cluster: ClickHouseCluster
    private let clock: () -> UnixTime
    private let pause: (Double) -> Void

    /// How often a copy is made before it counts as failed, and the seconds before each further time.
    package static let pauses = [0.5, 2.0, 8.0]

    package init(
        _ cluster: ClickHouseCluster, clock: @escaping () -> UnixTime = UnixTime.now,
        pause: @escaping (Double) -> Void = ClickHouseServer.sleep
    ) {
        (self.cluster, self.clock, self.pause) = (cluster, clock, pause)
    }

    package var rulesTexts: RulesTexts { RulesTexts(cluster) }

    /// Has a private store filled, and copies it.
    ///
    /// - Parameters:
    ///   - stores: The stores whose positions the private one begins with; nil for all.
    ///   - renews: Also adds up the days that changed. A caller that copies often does that now and then with
    ///     ``renew()``.
    ///   - grouper: The rules that the store of `fill` is grouped by.
    ///   - fill: Imports into the store of this path.
    /// - Throws: Why not all of it is in the cluster; it can be taken again then.
    package func run<Answer>(
        of stores: [UniqueID]? = nil, renews: Bool = true, grouper: any ReportGrouper,
        _ fill: (_ path: String) throws -> Answer
    ) throws -> (answer: Answer, copied: StoreCopy.Summary) {
        let directory = try PrivateDirectory()
        defer { withExtendedLifetime(directory) {} }
        let path = directory.path + "/staged.sqlite"
        let file = try StoreFile.openForWriting(
            path: path, role: .central, followsLinks: false, wait: .seconds(60))
        try SourcePositions(cluster).seed(file.connection, of: stores)
        try file.close()
        let answer = try fill(path)
        return (answer, try copy(path, renews: renews, grouper: grouper))
    }

    /// Copies an existing central store.
    ///
    /// - Parameter grouper: Groups reports again of which names came later; nil leaves them.
    package func copy(
        _ path: String, renews: Bool = true, grouper: (any ReportGrouper)? = nil
    ) throws -> StoreCopy.Summary {
        let connection = try Connection(to: StoreFile.absolute(path), as: path, .readOnly)
        var summary = try retrying { try StoreCopy(connection, to: cluster, clock: clock).run() }
        if let grouper {
            let regroup = ClusterRegroup(cluster, clock: clock)
            summary.days.formUnion(
                try retrying { try regroup.run(ofPlaces: summary.latePlaces, grouper) })
        }
        if renews { try renew(summary.days) }
        return summary
    }

    /// Adds up days again: these, or all that changed since they were.
    package func renew(_ days: Set<Int64>? = nil) throws {
        try retrying {
            let rollUps = RollUpDays(cluster)
            try rollUps.renew(days ?? rollUps.stale(), at: clock())
        }
    }

    /// Adds up every day that has reports.
    func renewAll() throws {
        try retrying {
            let rollUps = RollUpDays(cluster)
            try rollUps.mark(rollUps.withReports(), at: clock())
            try rollUps.renew(rollUps.stale(), at: clock())
        }
    }

    /// Everything here may be done again from its beginning: that is done when a shard did not answer.
    private func retrying<Answer>(_ body: () throws -> Answer) throws -> Answer {
        for seconds in Self.pauses {
            do { return try body() } catch let error as ClickHouseError where error.passes {
                pause(seconds)
            }
        }
        return try body()
    }
}

/// A directory that only this user can look into, and that goes with its owner.
final class PrivateDirectory {
    let path: String

    init() throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/var/tmp"
        var template = Array("\(parent)/stallctl-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw StoreError.cannotOpen(path: parent, reason: String(cString: strerror(errno)))
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        for name in ["", "-wal", "-shm", "-journal"] { unlink("\(path)/staged.sqlite\(name)") }
        rmdir(path)
    }
}
