// Many agents' stores into one: how fast, how fast when nothing is new, and how small it all is.

import CSQLite
import Foundation
import StallAnalysis
import StallIngest
import StallModel

enum Taking {
    static func measure(in directory: String, stores: Int, reports: Int) throws {
        let paths = try Fleet.makeAgentStores(
            in: directory + "/agents", count: stores, reports: reports)
        let count = Double(stores * reports)
        let central = "\(directory)/taken.sqlite"
        // In turns, because a machine's speed drifts, and the first to write finds its memory cold.
        var (first, again, copied): ([Effort], [Effort], [Effort]) = ([], [], [])
        for _ in 0..<3 {
            unlink(central)
            let ingest = try Ingest(into: central, grouper: DefaultGrouper())
            try first.append(
                Effort.of {
                    let summary = try ingest.run(paths)
                    guard summary.addedCount == stores * reports else {
                        throw RawDatabase.Failure(
                            description: "ingest took \(summary.addedCount) reports")
                    }
                })
            try again.append(Effort.of { _ = try ingest.run(paths) })
            try ingest.close()
            try copied.append(Effort.of { try copy(paths, to: directory + "/limit.sqlite") })
            unlink(directory + "/limit.sqlite")
        }

        func say(
            _ name: String, _ values: [Double], _ unit: String, _ contestant: String = "stallwatch"
        ) throws {
            try StoreBenchmark.say(name, contestant, size: stores, values, unit)
        }
        func rates(_ efforts: [Effort], _ time: KeyPath<Effort, Duration>) -> [Double] {
            efforts.map { count / ($0[keyPath: time] / .seconds(1)) }
        }
        let copying = "SQLite alone, rows as they are"
        try say("ingest", rates(first, \.elapsed), "reports/s")
        try say("ingest", rates(copied, \.elapsed), "reports/s", copying)
        try say("ingest, by CPU time", rates(first, \.cpu), "reports/s")
        try say("ingest, by CPU time", rates(copied, \.cpu), "reports/s", copying)
        try say(
            "ingest, nothing new", again.map { Double(stores) / ($0.elapsed / .seconds(1)) },
            "stores/s")

        let sizes = paths.reduce(0) { $0 + size($1) }
        try say("agent: bytes a report", [Double(sizes) / count], "bytes")
        try say("central: bytes a report", [Double(size(central)) / count], "bytes")
        let database = try RawDatabase(central)
        let own = try database.integer("select sum(pgsize) from dbstat where name = 'report'")
        try say("central: bytes a report, its row", [Double(own) / count], "bytes")
        let rollUps = try database.integer("select sum(pgsize) from dbstat where name = 'rollup'")
        try say("central: bytes of roll-ups", [Double(rollUps)], "bytes")
        try say(
            "central: bytes of all that reports share",
            [Double(size(central)) - Double(own + rollUps)], "bytes")
    }

    /// What SQLite needs to read and write the same rows unchanged: no stack is shared, no group computed, nothing
    /// checked or aggregated.
    private static func copy(_ paths: [String], to target: String) throws {
        unlink(target)
        let database = try RawDatabase(target)
        try database.run(
            """
            pragma journal_mode = wal; pragma synchronous = normal; pragma cache_size = -65536;
            create table report (source, seq, \(columns), primary key (source, seq)) without rowid
            """)
        let add = try database.prepare(
            "insert into report values (?, \(Array(repeating: "?", count: 20).joined(separator: ", ")))"
        )
        defer { sqlite3_finalize(add) }
        for batch in stride(from: 0, to: paths.count, by: 50) {
            try database.run("begin")
            for index in batch..<min(batch + 50, paths.count) {
                let source = try RawDatabase(paths[index])
                let rows = try source.prepare("select seq, \(columns) from report order by seq")
                defer { sqlite3_finalize(rows) }
                sqlite3_bind_int64(add, 1, Int64(index))
                while sqlite3_step(rows) == SQLITE_ROW {
                    for column in 0..<CInt(20) {
                        sqlite3_bind_value(add, column + 2, sqlite3_column_value(rows, column))
                    }
                    sqlite3_step(add)
                    sqlite3_reset(add)
                }
            }
            try database.run("commit")
        }
    }

    private static let columns = """
        revision, id, loop, mode, activity, phase, state, verdict, start_us, duration_ns, cpu_ns,
        detection_delay_ns, samples, cause, cause_confidence, cause_detail, threads, agent_ns,
        skipped_threads
        """

    private static func size(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }
}
