// The stalls that a filter selects, as answers about stacks and lists of reports read them. Each is read once, and not
// held.

internal import StallArchive
package import StallModel
package import StallQuery
internal import StallStore

extension ClusterStore {
    /// The filter of those who mean stalls unless it names something else.
    func ofStalls(_ filter: ReportFilter) -> ReportFilter {
        var filter = filter
        filter.verdicts = filter.verdicts ?? [.stalled]
        return filter
    }

    package func stackSets(_ filter: ReportFilter) throws -> StackSets {
        var sets = StackSets()
        var stalls = try StallRows(server, keptReports())
        try stalls.forEach(
            ReportConditions(ofStalls(filter)), "build_id, duration_ns, stack, samples",
            columnCount: 4
        ) { stalls, row in
            let executable = sets.number(ofExecutable: try row.buildID())
            let duration = try stalls.duration_ns(row)
            try stalls.readStacks(row, in: duration)
            sets.add(stalls.stacks.stall, lasting_ns: duration, executable: executable)
        }
        return sets
    }

    package func stackTimes(_ filter: ReportFilter) throws -> [StackTime] {
        struct Key: Hashable {
            var loop: Int
            var stack: Int64
        }
        var names = RowNumbers<[String]>()
        var sums: [Key: (time_ns: Int64, count: Int)] = [:]
        var stalls = try StallRows(server, keptReports())
        try stalls.forEach(
            ReportConditions(ofStalls(filter)), "app, loop_name, duration_ns, stack, samples",
            columnCount: 5
        ) { stalls, row in
            let loop = Int(names.number(of: [try row.text(), try row.text()]).0)
            try stalls.readStacks(row, in: stalls.duration_ns(row))
            stalls.stacks.forEachSample { stack, weight in
                let key = Key(loop: loop, stack: stack)
                let sum = sums[key] ?? (0, 0)
                sums[key] = (sum.time_ns.addingSaturated(weight), sum.count + 1)
            }
        }
        return sums.map { key, sum in
            let name = names.keys[key.loop - 1]
            return StackTime(
                app: name[0], loop: name[1], stack: key.stack, time_ns: sum.time_ns,
                sampleCount: sum.count)
        }
    }

    package func stallTable(_ filter: ReportFilter, expected: Int) throws -> StallTable {
        struct Key: Hashable {
            var loop: Int64
            var cause: CauseClass?
            var isWatched: Bool
        }
        let reports = try keptReports()
        var table = StallTable()
        table.stalls.reserveCapacity(min(max(expected, 0), 1 << 24))
        var facts = RowNumbers<Key>()
        var stalls = StallRows(server, reports)
        try stalls.forEach(
            ReportConditions(filter),
            """
            verdict, state, loop, cause, \(server.isOfWatchedLoop), source, day, duration_ns, stack,
            samples, build_id, delayed_ns, start_us, seq
            """, columnCount: 14
        ) { stalls, row in
            let verdict = try row.verdict()
            table.counts[verdict, default: 0] += 1
            guard verdict == .stalled else { return row.skipRest() }
            let state = try row.state()
            table.openCount += state == .open ? 1 : 0
            table.hangCount += state == .hang ? 1 : 0
            let key = Key(
                loop: try row.integer(), cause: try row.cause(),
                isWatched: try row.integer(as: UInt8.self) != 0)
            let source = SourceDay(source: try row.uniqueID(), day: try row.integer())
            let duration = try stalls.duration_ns(row)
            try stalls.readStacks(row, in: duration)
            let own = stalls.stacks.stall
            let executable = table.sets.number(ofExecutable: try row.buildID())
            let set = table.sets.number(of: own.stacks, executable: executable)
            if own.stacks.count > 1 { table.weights.append(contentsOf: own.weights) }
            let delayed = try stalls.delayed_ns(row, in: duration)
            if delayed > 0 { table.delayed_ns[table.stalls.count] = delayed }
            table.stalls.append(
                StallTable.Stall(
                    start_us: try row.integer(), duration_ns: duration,
                    source: sourceDays.number(of: source).0, seq: try row.integer(),
                    facts: Int32(facts.number(of: key).0 - 1), set: Int32(set)))
        }
        var runs = RunNumbers()
        try reports.excerpt.fill { try reports.fetchLoops(Set(facts.keys.map(\.loop))) }
        for key in facts.keys {
            let loop = try reports.loop(key.loop)
            table.facts.append(
                StallTable.Facts(
                    run: runs.number(of: loop.run), loop: loop.name, cause: key.cause,
                    isWatched: key.isWatched))
        }
        table.runs = runs.runs
        return table
    }

    package func reportID(source: Int64, seq: Int64) throws -> UniqueID? {
        guard let key = sourceDays.key(of: source) else { return nil }
        var conditions = ReportConditions(ReportFilter())
        conditions.add(ofKey: "day = \(key.day)")
        conditions.add("source = \(key.source) and seq = \(seq)")
        var rows = try server.rows(
            "select id from \(conditions.revisions(server)) limit 1", columnCount: 1)
        return try rows.step() ? try rows.uniqueID() : nil
    }

    package func functions(
        ofStacks stacks: [Int64], _ number: (Frame) -> Int32
    ) throws -> StackFunctions {
        let reports = try keptReports()
        try reports.fetchStacks(numbers: stacks)
        return try reports.excerpt.store.functions(ofStacks: stacks, number)
    }

    package func frames(ofStacks stacks: Set<Int64>) throws -> [Int64: [Frame]] {
        let reports = try keptReports()
        try reports.fetchStacks(numbers: stacks)
        return try reports.excerpt.store.frames(ofStacks: stacks)
    }
}

/// Where a report of a table of stalls is looked up: a day is a part of the key, so that not all reports are searched.
struct SourceDay: Hashable {
    var source: UniqueID
    var day: Int64
}
