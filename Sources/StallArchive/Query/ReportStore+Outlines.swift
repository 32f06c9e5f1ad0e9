// Reports without their stacks, for tables of all of them. They come day by day, the newest first: to sort a month's
// reports at once would need a file of its own, and to look each one up would read the store out of order.

package import StallModel
package import StallStore

extension ReportStore {
    /// The reports that the filter selects, newest first, each with the functions of its heaviest stack; none where the
    /// store does not group.
    ///
    /// - Parameters:
    ///   - number: Gives a distinct frame its number, as for `functions(ofStacks:_:)`.
    ///   - body: Is given a report and the numbers of the functions on its heaviest stack, innermost first.
    package func forEachOutline(
        _ filter: ReportFilter, limit: Int?, number: (Frame) -> Int32,
        _ body: (ReportOutline, [Int32]) throws -> Void
    ) throws {
        try walk { connection in
            guard try connection.isGrouped else { return }
            try connection.execute("pragma cache_size = -8192")
            let condition = Condition(filter)
            let rows = try connection.prepare(
                """
                select \(OutlineReader.columns) from report_day cross join report
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
            var functions = try FunctionReader(connection)
            var rest = limit ?? .max
            while rest > 0, try days.step() {
                let day = try days.integer(at: 0)
                let start = day * .microsecondsOfDay
                try condition.bind(to: rows, after: [day, start, start + .microsecondsOfDay])
                while rest > 0, try rows.step() {
                    let outline = try reader.outline(rows)
                    let stack = try outline.heaviestStack.map {
                        try functions.functions(ofStack: $0, number)
                    }
                    try body(outline, stack ?? [])
                    rest -= 1
                }
            }
        }
    }

    /// The time of the stalls that the filter selects by app, loop and stack, in unspecified order.
    ///
    /// **Cost:** time grows with the reports, memory with apps, loops and stacks.
    package func stackTimes(_ filter: ReportFilter) throws(StoreError) -> [StackTime] {
        guard filter.verdicts?.contains(.stalled) ?? true else { return [] }
        return try answer { connection in
            struct Key: Hashable {
                var loop: Int32
                var stack: Int64
            }
            struct Loop: Hashable {
                var app, name: String
            }
            let reader = try SummaryReader(connection)
            var filter = filter
            filter.verdicts = [.stalled]
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
                guard let loop = try loops[rows.integer(at: 0)] else {
                    throw rows.damage("a report of no loop")
                }
                try stacks.read(rows, at: 2, in: rows.duration_ns(at: 1))
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

/// Reads reports without their stacks; what they share is read once.
private final class OutlineReader {
    static let columns = """
        report.id, report.loop, report.mode, report.activity, report.phase, report.state,
        report.verdict, report.start_us, report.duration_ns, report.cpu_ns,
        report.detection_delay_ns, report.samples, report.agent_ns, report.skipped_threads,
        report.ending, report.signature, report.cause, report.cause_confidence,
        report.cause_detail
        """

    private var loops: [Int64: (run: ProcessRun, name: String, threshold: Duration)] = [:]
    private var labels: [Int64: String] = [:]
    private let groups: [Int64: ReportGroup]

    init(_ connection: Connection) throws {
        var runs: [UniqueID: ProcessRun] = [:]
        let rows = try connection.prepare(
            """
            select loop.id, loop.name, loop.threshold_ns, \(ProcessRun.columns)
            from loop join process_run on process_run.id = loop.run
            """)
        while try rows.step() {
            let found = try ProcessRun(rows, at: 3)
            let run = runs[found.id] ?? found
            runs[found.id] = run
            loops[try rows.integer(at: 0)] = (run, rows.text(at: 1), try rows.duration(at: 2))
        }
        let texts = try connection.prepare("select id, value from label")
        while try texts.step() { labels[try texts.integer(at: 0)] = texts.text(at: 1) }
        groups = try SignatureRows.groups(connection)
    }

    func outline(_ rows: Statement) throws -> ReportOutline {
        guard let loop = loops[try rows.integer(at: 1)] else {
            throw rows.damage("a report of no loop")
        }
        guard let mode = labels[try rows.integer(at: 2)] else {
            throw rows.damage("a report of no mode")
        }
        guard let group = groups[try rows.integer(at: 15)] else {
            throw rows.damage("a report of no group")
        }
        let duration = try rows.duration(at: 8)
        let report = StallReport(
            id: try rows.uniqueID(at: 0), run: loop.run, loop: loop.name, mode: mode,
            phase: try rows.value(at: 4),
            activity: rows.optionalInteger(at: 3).flatMap { labels[$0] },
            start: UnixTime(microseconds: try rows.integer(at: 7)), duration: duration,
            cpuTime: try rows.duration(at: 9), threshold: loop.threshold,
            detectionDelay: try rows.duration(at: 10), state: try rows.value(at: 5),
            ending: rows.isNull(at: 14) ? nil : try rows.value(at: 14),
            verdict: try rows.value(at: 6), samples: [], cause: try rows.cause(at: 16),
            threads: [], skippedThreadCount: Int(try rows.count(at: 13)),
            agentTime: try rows.duration(at: 12))
        let samples = try rows.samples(at: 11)
        var heaviest: (weight: Int64, stack: Int64)?
        for (sample, weight) in zip(samples, samples.weights(in: duration.nanoseconds)) {
            guard let stack = sample.stack, !sample.isLate, weight > heaviest?.weight ?? -1 else {
                continue
            }
            heaviest = (weight, stack)
        }
        return ReportOutline(
            report: report, group: group, sampleCount: samples.count,
            heaviestStack: heaviest?.stack)
    }
}
