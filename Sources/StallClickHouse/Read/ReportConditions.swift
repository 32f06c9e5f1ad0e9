// A filter as conditions of a statement.

internal import StallArchive
internal import StallModel

/// Which rows of a table a filter selects. Tables name their columns alike: `app`, `version`, `loop_name`, `verdict`, `cause`.
struct ReportConditions {
    private(set) var parts: [ClickHouseQuery] = []

    /// - Parameters:
    ///   - hasHost: Whether the rows tell the host; the filter's hosts are left out otherwise.
    ///   - hasTime: Likewise for when each began.
    init(_ filter: ReportFilter, hasHost: Bool = true, hasTime: Bool = true) {
        if !filter.apps.isEmpty { parts.append("app in \(list: filter.apps)") }
        if !filter.versions.isEmpty { parts.append("version in \(list: filter.versions)") }
        if !filter.loops.isEmpty { parts.append("loop_name in \(list: filter.loops)") }
        if hasHost, !filter.hosts.isEmpty { parts.append("host in \(list: filter.hosts)") }
        if let verdicts = filter.verdicts {
            parts.append("verdict in \(list: verdicts.map(\.rawValue).sorted())")
        }
        if let causes = filter.causes {
            parts.append("cause in \(list: causes.map(\.rawValue).sorted())")
        }
        guard hasTime else { return }
        if let since = filter.since { add(from: since.microseconds) }
        if let until = filter.until { add(before: until.microseconds) }
    }

    mutating func add(_ condition: ClickHouseQuery) { parts.append(condition) }

    /// Rows of these days.
    mutating func add(days: Range<Int64>) {
        if days.lowerBound > Self.firstDay { parts.append("day >= \(days.lowerBound)") }
        if days.upperBound < Self.lastDay { parts.append("day < \(days.upperBound)") }
    }

    private mutating func add(from start_us: Int64) {
        // The day as well: it is what partitions and parts are left out by.
        parts.append("day >= \(Self.clamped(start_us.day)) and start_us >= \(start_us)")
    }

    private mutating func add(before end_us: Int64) {
        parts.append("day <= \(Self.clamped(end_us.day)) and start_us < \(end_us)")
    }

    /// What follows `where`.
    var sql: ClickHouseQuery { parts.isEmpty ? "1" : .joined(parts, by: " and ") }

    /// Days are of 32 bits in the tables.
    private static let (firstDay, lastDay) = (Int64(Int32.min), Int64(Int32.max))
    private static func clamped(_ day: Int64) -> Int64 { min(max(day, firstDay), lastDay) }
}

extension Int64 {
    /// How often `step` fits below the number; negative below zero.
    func floored(by step: Int64) -> Int64 { self / step - (self % step < 0 ? 1 : 0) }
}
