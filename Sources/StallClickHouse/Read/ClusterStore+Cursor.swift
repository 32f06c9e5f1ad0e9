// Reports one by one. A part of them at a time is put into the store in memory, read there, and forgotten; the rows
// that they share stay, with their numbers, so that a writer renders each stack once.

internal import StallArchive
package import StallModel
package import StallQuery
internal import StallStore

extension ClusterStore {
    package func forEachReport(
        _ filter: ReportFilter, in order: CursorOrder, limit: Int?,
        _ body: (StallReport, ReportOrigin, any StoreLookup) throws -> Void
    ) throws {
        try forEachPart(filter, order, limit) { store, rest in
            var count = 0
            try store.forEachReport(filter, in: order, limit: rest) {
                count += 1
                try body($0, $1, $2)
            }
            return count
        }
    }

    package func forEachOutline(
        _ filter: ReportFilter, limit: Int?, withThreads: Bool,
        _ body: (ReportOutline, any OutlineLookup) throws -> Void
    ) throws {
        try forEachPart(filter, .newestFirst, limit) { store, rest in
            var count = 0
            try store.forEachOutline(filter, limit: rest, withThreads: withThreads) {
                count += 1
                try body($0, $1)
            }
            return count
        }
    }

    package func forEachStall(
        _ filter: ReportFilter, in order: CursorOrder, limit: Int?,
        _ body: (StallTrace, any StoreLookup) throws -> Void
    ) throws {
        let filter = ofStalls(filter)
        try forEachPart(filter, order, limit) { store, rest in
            var count = 0
            try store.forEachStall(filter, in: order, limit: rest) {
                count += 1
                try body($0, $1)
            }
            return count
        }
    }

    /// The reports of a part, some twenty megabytes.
    private static let sliceSize = 60_000

    /// Calls `read` with a store that has one part of the reports after the other.
    ///
    /// - Parameter read: Gets how many more are wanted; returns how many it passed on.
    private func forEachPart(
        _ filter: ReportFilter, _ order: CursorOrder, _ limit: Int?,
        _ read: (ReportStore, _ rest: Int?) throws -> Int
    ) throws {
        if let limit, limit <= 0 { return }
        let reports = try keptReports()
        try reports.forget()
        defer { try? reports.forget() }
        func fetch(_ part: ReportConditions, _ count: Int?) throws -> Int {
            try reports.fetch(part, count.map(Self.newest) ?? "", withStacks: true)
        }
        func slices(_ order: ReportSlices.Order) -> ReportSlices {
            ReportSlices(
                server: server, conditions: ReportConditions(filter), order: order,
                size: Self.sliceSize)
        }
        if let limit, order != .newestFirst {
            // The newest are meant, whatever the order.
            var rest = limit
            try slices(.newestFirst).forEach { part in
                rest -= try fetch(part, rest)
                return rest > 0
            }
            _ = try read(reports.excerpt.store, limit)
            return
        }
        var rest = limit
        try slices(order == .newestFirst ? .newestFirst : order == .byLoop ? .byLoop : .stored)
            .forEach { part in
                _ = try fetch(part, rest)
                let count = try read(reports.excerpt.store, rest)
                try reports.forget()
                rest = rest.map { $0 - count }
                return rest ?? 1 > 0
            }
    }

    /// The clauses behind the conditions, for a number of reports.
    static func newest(_ count: Int) -> ClickHouseQuery {
        "order by start_us desc, id desc limit \(count)"
    }
}
