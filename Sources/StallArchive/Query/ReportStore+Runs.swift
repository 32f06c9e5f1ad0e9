// Stalls by process run, for comparisons. Roll-ups do not distinguish runs, so that the reports are read.

internal import StallModel
package import StallQuery
package import StallStore

extension ReportStore {
    /// Passes the stalls that the filter selects, one by one; false in an agent's store, whose reports have no groups.
    /// Of stalls whose reports were pruned nothing is known.
    ///
    /// - Parameter begin: Gets the lists that the stalls' indices point into.
    ///
    /// **Cost:** time grows with the reports, memory with the runs.
    package func runStalls(
        _ filter: ReportFilter, begin: (RunLoops) -> Void,
        _ body: (RunStall) -> Void
    ) throws(StoreError) -> Bool {
        var filter = filter
        filter.verdicts = filter.verdicts ?? [.stalled]
        return try answer { [filter] connection in
            guard try connection.isGrouped else { return false }
            let reader = try SummaryReader(connection)
            let watched = try WatchedLoops(connection)
            var hashes: [Int64: Int64] = [:]
            let groups = try connection.prepare("select id, hash from signature")
            while try groups.step() {
                let id = try groups.integer()
                hashes[id] = try groups.integer()
            }
            var names: [String] = []
            var numbers: [String: Int] = [:]
            let loops = reader.loops.mapValues { loop in
                let number = numbers[loop.name] ?? names.count
                if number == names.count {
                    numbers[loop.name] = number
                    names.append(loop.name)
                }
                return (run: loop.run, name: number)
            }
            begin(RunLoops(runs: reader.runs, names: names, loops: Array(loops.values)))
            let condition = Condition(filter)
            let rows = try connection.prepare(
                """
                select report.signature, report.source, report.loop, report.cause, report.duration_ns
                from \(connection.reports(filter)) where \(condition.sql)
                """)
            try condition.bind(to: rows)
            // Reports of a source lie together, and mostly are of one loop.
            var last = (source: Int64.min, loop: Int64.min)
            var (run, name, isWatched) = (0, 0, false)
            while try rows.step() {
                guard let signature = rows.optionalInteger() else {
                    rows.skipRest()
                    continue
                }
                let place = (source: try rows.integer(), loop: try rows.integer())
                if place != last {
                    guard let loop = loops[place.loop] else {
                        throw rows.damage("a report of no loop")
                    }
                    (run, name) = loop
                    isWatched = watched.contains(source: place.source, loop: place.loop)
                    last = place
                }
                guard let hash = hashes[signature] else {
                    throw rows.damage("a report of no group")
                }
                body(
                    RunStall(
                        run: run, loop: name, signature: hash, cause: try rows.causeClass(),
                        isWatched: isWatched, duration: .nanoseconds(try rows.duration_ns())))
            }
            return true
        }
    }
}
