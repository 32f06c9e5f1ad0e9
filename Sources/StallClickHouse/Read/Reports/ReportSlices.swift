// Many reports in parts that are small enough to be fetched at once: no answer is as long as the store, and none is held longer
// than its part is read. A part is a span of the table's key, so that a server reads little beside it.

internal import StallArchive
internal import StallModel
internal import StallStore

/// The reports that conditions select, in parts of about one size.
struct ReportSlices {
    enum Order {
        /// Parts follow each other in time, the newest first.
        case newestFirst
        /// As the table has them, which is the cheapest way to read all.
        case stored
        /// All reports of a loop are in one part.
        case byLoop
    }

    let server: ClickHouseServer
    let conditions: ReportConditions
    let order: Order
    /// The most reports of a slice, unless more of one app began within ten seconds.
    let size: Int

    /// Calls `body` with the conditions of each part. A report that is written meanwhile may be in a part or not.
    ///
    /// - Parameter body: Returns whether to continue.
    func forEach(_ body: (ReportConditions) throws -> Bool) throws {
        var open: Span?
        func close() throws -> Bool {
            defer { open = nil }
            return try open.map { try body(self.conditions(of: $0)) } ?? true
        }
        for span in try order == .newestFirst ? spansOfDays() : spansOfApps() {
            if span.count <= size || order == .byLoop {
                if let joined = open?.joined(span), joined.count <= size {
                    open = joined
                    continue
                }
                guard try close() else { return }
                open = span
                continue
            }
            guard try close() else { return }
            for part in try parts(of: span) { guard try body(part) else { return } }
        }
        _ = try close()
    }

    /// From one to another, as the server orders texts.
    struct Apps: Equatable {
        var first, last: String
    }

    /// A span of keys.
    struct Span: Equatable {
        /// Nil for all.
        var apps: Apps?
        /// Nil for all.
        var days: ClosedRange<Int64>?
        /// The hashes of loops; nil for all.
        var loops: ClosedRange<Int64>?
        var count: Int

        private var isOfWholeApps: Bool { days == nil && loops == nil }

        /// One span for both, where nothing else is between them.
        func joined(_ next: Span) -> Span? {
            var joined = self
            joined.count = count.addingSaturated(next.count)
            if let days, let other = next.days, apps == next.apps {
                joined.days = days.joined(other)
            } else if let loops, let other = next.loops, apps == next.apps {
                joined.loops = loops.joined(other)
            } else if isOfWholeApps, next.isOfWholeApps, let apps, let other = next.apps {
                joined.apps = Apps(first: apps.first, last: other.last)
            } else {
                return nil
            }
            return joined
        }
    }

    /// Apps as a whole, and large ones by day or by loop. A report that is stored in two revisions counts twice here.
    private func spansOfApps() throws -> [Span] {
        let part: ClickHouseQuery = order == .byLoop ? "loop" : "day"
        var rows = try server.rows(
            """
            select app, toInt64(\(part)) as part, count() from \(conditions.revisions(server))
            group by app, part order by app, part
            """, columnCount: 3)
        var spans: [Span] = []
        var (app, parts): (String?, [Span]) = (nil, [])
        func addApp() {
            guard let app else { return }
            let count = parts.reduce(0) { $0.addingSaturated($1.count) }
            spans +=
                count <= size ? [Span(apps: Apps(first: app, last: app), count: count)] : parts
            parts = []
        }
        while try rows.step() {
            let name = try rows.text()
            if name != app { addApp() }
            app = name
            let number: Int64 = try rows.integer()
            var span = Span(
                apps: Apps(first: name, last: name), count: try rows.integer())
            if order == .byLoop {
                span.loops = number...number
            } else {
                span.days = number...number
            }
            parts.append(span)
        }
        addApp()
        return spans
    }

    private func spansOfDays() throws -> [Span] {
        var rows = try server.rows(
            """
            select day, count() from \(conditions.revisions(server)) group by day order by day desc
            """, columnCount: 2)
        var spans: [Span] = []
        while try rows.step() {
            let day = try rows.day()
            spans.append(Span(days: day...day, count: try rows.integer()))
        }
        return spans
    }

    private func conditions(of span: Span) -> ReportConditions {
        var conditions = conditions
        if let apps = span.apps {
            conditions.add(ofKey: "app >= \(apps.first) and app <= \(apps.last)")
        }
        if let days = span.days {
            conditions.add(ofKey: "day >= \(days.lowerBound) and day <= \(days.upperBound)")
        }
        if let loops = span.loops {
            conditions.add("loop >= \(loops.lowerBound) and loop <= \(loops.upperBound)")
        }
        return conditions
    }

    /// A day in spans of time. Most ids begin with the time, so that those of a span are a span of the key as well.
    private func parts(of span: Span) throws -> [ReportConditions] {
        let whole = conditions(of: span)
        let start = (span.days?.lowerBound ?? 0) &* Int64.microsecondsOfDay
        let slot: ClickHouseQuery = "intDiv(start_us - \(start), 10000000)"
        var rows = try server.rows(
            """
            select \(slot) as slot, count(), min(id), max(id) from \(whole.revisions(server))
            group by slot order by slot desc
            """, columnCount: 4)
        var parts: [ReportConditions] = []
        var open: (first: Int64, last: Int64, ids: [UniqueID], count: Int)?
        func close() {
            guard let open else { return }
            var part = whole
            let ids = open.ids.sorted { $0.words < $1.words }
            part.add(ofKey: "id >= \(ids.first!) and id <= \(ids.last!)")
            part.add("\(slot) >= \(open.first) and \(slot) <= \(open.last)")
            parts.append(part)
        }
        while try rows.step() {
            let (number, count): (Int64, Int) = (try rows.integer(), try rows.integer())
            let ids = [try rows.uniqueID(), try rows.uniqueID()]
            if let known = open, known.count + count <= size {
                open = (number, known.last, known.ids + ids, known.count + count)
            } else {
                close()
                open = (number, number, ids, count)
            }
        }
        close()
        return parts
    }
}

extension ClosedRange<Int64> {
    fileprivate func joined(_ other: ClosedRange<Int64>) -> ClosedRange<Int64> {
        Swift.min(lowerBound, other.lowerBound)...Swift.max(upperBound, other.upperBound)
    }
}
