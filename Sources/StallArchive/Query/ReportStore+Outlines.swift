// Reports without their stacks, for tables of all of them. They come day by day, the newest first: to sort a month's
// reports at once would need a file of its own, and to look each one up would read the store out of order.

import StallModel
package import StallQuery
package import StallStore

extension ReportStore {
    /// The reports that the filter selects, newest first, with their stacks as numbers; none where the store does not
    /// group.
    package func forEachOutline(
        _ filter: ReportFilter, limit: Int?, withThreads: Bool,
        _ body: (ReportOutline, any OutlineLookup) throws -> Void
    ) throws {
        try walk { connection in
            guard try connection.isGrouped else { return }
            // It bounds the pages that are kept, and what is sorted in memory: a day of 30,000 reports fits.
            try connection.execute("pragma cache_size = -4096")
            let condition = Condition(filter)
            let rows = try connection.prepare(
                """
                select \(OutlineReader.columns(threads: withThreads))
                from report_day cross join report
                on report.source = report_day.source
                    and report.seq between report_day.first_seq and report_day.last_seq
                where report_day.day = ? and report.start_us >= ? and report.start_us < ?
                    and \(condition.sql)
                order by report.start_us desc, report.id desc
                """)
            let days = try connection.prepare(
                """
                select distinct day from report_day where day >= ? and day <= ? order by day desc
                """)
            try days.bind(
                filter.since?.microseconds.day ?? .min, filter.until?.microseconds.day ?? .max)
            let reader = try OutlineReader(connection)
            let lookup = try placeLookup(connection)
            var rest = limit ?? .max
            while rest > 0, try days.step() {
                let day = try days.day()
                let start = day * .microsecondsOfDay
                try condition.bind(to: rows, after: [day, start, start + .microsecondsOfDay])
                while rest > 0, try rows.step() {
                    try body(reader.outline(rows), lookup)
                    rest -= 1
                }
            }
        }
    }

    /// The time of the stalls that the filter selects by app, loop and stack, in unspecified order.
    ///
    /// **Cost:** time grows with the reports, memory with apps, loops and stacks.
    package func stackTimes(_ filter: ReportFilter) throws(StoreError) -> [StackTime] {
        try answer { connection in
            struct Key: Hashable {
                var loop: Int32
                var stack: Int64
            }
            struct Loop: Hashable {
                var app, name: String
            }
            let reader = try SummaryReader(connection)
            var filter = filter
            filter.verdicts = filter.verdicts ?? [.stalled]
            let condition = Condition(filter)
            let rows = try connection.prepare(
                """
                select report.loop, report.duration_ns, report.samples
                from \(connection.reports(filter)) where \(condition.sql)
                """)
            try condition.bind(to: rows)
            var numbers: [Loop: Int32] = [:]
            var names: [Loop] = []
            let loops = reader.loops.mapValues { loop -> Int32 in
                let key = Loop(app: reader.runs[loop.run].app, name: loop.name)
                if let known = numbers[key] { return known }
                numbers[key] = Int32(names.count)
                names.append(key)
                return Int32(names.count - 1)
            }
            var sums: [Key: (time_ns: Int64, count: Int)] = [:]
            var stacks = SampleStacks()
            while try rows.step() {
                guard let loop = try loops[rows.integer()] else {
                    throw rows.damage("a report of no loop")
                }
                try stacks.read(rows, in: rows.duration_ns())
                stacks.forEachSample { stack, weight in
                    let sum = sums[Key(loop: loop, stack: stack)] ?? (0, 0)
                    sums[Key(loop: loop, stack: stack)] = (
                        sum.time_ns.addingSaturated(weight), sum.count + 1
                    )
                }
            }
            return sums.map { key, sum in
                StackTime(
                    app: names[Int(key.loop)].app, loop: names[Int(key.loop)].name,
                    stack: key.stack, time_ns: sum.time_ns, sampleCount: sum.count)
            }
        }
    }
}
