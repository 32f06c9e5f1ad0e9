// A filter as conditions of a statement.

internal import StallArchive
internal import StallModel
internal import StallQuery

/// The conditions of a filter on a table's rows. Tables name their columns alike: `app`, `version`, `loop_name`,
/// `verdict`, `cause`; only reports have a `state`.
struct ReportConditions {
    /// Of columns that are in a report's key. They are equal in all its revisions, so that they may be looked at before
    /// `final` takes the latest one.
    private var keyParts: [ClickHouseQuery] = []
    private var parts: [ClickHouseQuery] = []

    /// - Parameters:
    ///   - hasHost: Whether the rows have the host; the filter's hosts are left out otherwise.
    ///   - hasTime: Likewise for when each began.
    init(_ filter: ReportFilter, hasHost: Bool = true, hasTime: Bool = true) {
        if !filter.apps.isEmpty { keyParts.append("app in \(list: filter.apps)") }
        if !filter.versions.isEmpty { parts.append("version in \(list: filter.versions)") }
        if !filter.loops.isEmpty { parts.append("loop_name in \(list: filter.loops)") }
        if hasHost, !filter.hosts.isEmpty { parts.append("host in \(list: filter.hosts)") }
        if let verdicts = filter.verdicts {
            parts.append("verdict in \(list: verdicts.map(\.rawValue).sorted())")
        }
        if let causes = filter.causes {
            parts.append("cause in \(list: causes.map(\.rawValue).sorted())")
        }
        if let states = filter.states {
            parts.append("state in \(list: states.map(\.rawValue).sorted())")
        }
        guard hasTime else { return }
        if let since = filter.since { add(from: since.microseconds) }
        if let until = filter.until { add(before: until.microseconds) }
    }

    mutating func add(_ condition: ClickHouseQuery) { parts.append(condition) }

    /// - Parameter condition: Of `app`, `day` and `id` alone.
    mutating func add(ofKey condition: ClickHouseQuery) { keyParts.append(condition) }

    /// - Parameter signatures: The hashes of groups.
    mutating func add(groups signatures: Set<Int64>, orNone: Bool, _ server: ClickHouseServer) {
        let isOfGroup: ClickHouseQuery = """
            signature in
                (select key from \(server.table("signature")) where hash in \(list: signatures.sorted()))
            """
        parts.append(orNone ? "(signature = 0 or \(isOfGroup))" : isOfGroup)
    }

    /// Reports of these ids; their bounds limit the parts of the table they may be in.
    mutating func add(ofIDs ids: Set<UniqueID>) {
        let sorted = ids.sorted { $0.words < $1.words }
        guard let first = sorted.first, let last = sorted.last else { return parts.append("0") }
        keyParts.append("id >= \(first) and id <= \(last) and id in \(list: sorted.map(\.bytes))")
    }

    /// Rows of these days.
    mutating func add(days: Range<Int64>) {
        if days.lowerBound > Self.firstDay { keyParts.append("day >= \(days.lowerBound)") }
        if days.upperBound < Self.lastDay { keyParts.append("day < \(days.upperBound)") }
    }

    /// Rows of other days, and of some of these.
    mutating func add(outside days: Range<Int64>, or some: [Int64] = []) {
        guard !days.isEmpty else { return }
        var inside = ReportConditions(ReportFilter())
        inside.add(days: days)
        keyParts.append("(day in \(list: some) or not (\(inside.sql)))")
    }

    mutating func add(from start_us: Int64) {
        // The day as well: it is what partitions and parts are left out by.
        keyParts.append("day >= \(Self.clamped(start_us.day))")
        parts.append("start_us >= \(start_us)")
    }

    mutating func add(before end_us: Int64) {
        keyParts.append("day <= \(Self.clamped(end_us.day))")
        parts.append("start_us < \(end_us)")
    }

    /// The conditions, for `where`.
    var sql: ClickHouseQuery { Self.all(keyParts + parts) }

    /// The source for `from`: the reports, each in its latest revision.
    func reports(_ server: ClickHouseServer) -> ClickHouseQuery {
        "\(Self.table(server)) final \(clauses)"
    }

    /// The source for `from`: the reports, in all revisions that are still stored. That is cheaper.
    func revisions(_ server: ClickHouseServer) -> ClickHouseQuery {
        "\(Self.table(server)) \(clauses)"
    }

    /// A server on its own is asked for its own table: what stands for it knows no `prewhere` with other columns than those
    /// that are selected.
    private static func table(_ server: ClickHouseServer) -> ClickHouseQuery {
        server.address.cluster == nil ? "report_local" : "report"
    }

    /// Other columns are read of those rows alone whose keys fit. It is most of what a question about a few of many reports
    /// costs.
    var clauses: ClickHouseQuery {
        keyParts.isEmpty
            ? "where \(Self.all(parts))" : "prewhere \(Self.all(keyParts)) where \(Self.all(parts))"
    }

    private static func all(_ parts: [ClickHouseQuery]) -> ClickHouseQuery {
        parts.isEmpty ? "1" : .joined(parts, by: " and ")
    }

    /// Days are of 32 bits in the tables.
    private static let (firstDay, lastDay) = (Int64(Int32.min), Int64(Int32.max))
    private static func clamped(_ day: Int64) -> Int64 { min(max(day, firstDay), lastDay) }
}

extension Int64 {
    /// How often `step` fits below the number; negative below zero.
    func floored(by step: Int64) -> Int64 { self / step - (self % step < 0 ? 1 : 0) }
}
