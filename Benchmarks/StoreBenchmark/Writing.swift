// What a report costs the agent's writer thread, warm: the transaction that makes it durable, and the symbols of the
// locations that were not looked up before.

import CSQLite
import Foundation
import StallModel
import StallStore

enum Writing {
    static func measure(in directory: String) throws {
        let path = "\(directory)/writing.sqlite"
        defer { unlink(path) }
        var workload = Workload(seed: 2)
        let run = workload.run(0)
        let store = try AgentStore(path: path, run: run)
        var times: [Double] = []
        for index in 0..<4_000 {
            let report = workload.report(run)
            let elapsed = try ContinuousClock().measure {
                try workload.record(report, to: store)
            }
            if index >= 2_000 { times.append(elapsed / .microseconds(1)) }
        }
        try store.close()
        try say("agent: a report with names, p50", times, 0.5)
        try say("agent: a report with names, p99", times, 0.99)

        let database = try RawDatabase(directory + "/limit.sqlite")
        defer { unlink(directory + "/limit.sqlite") }
        try database.run(
            """
            pragma journal_mode = wal; pragma synchronous = normal;
            create table report (id integer primary key, row blob not null) strict
            """)
        times = try (0..<2_000).map { _ in
            try ContinuousClock().measure {
                try database.run(
                    "begin immediate; insert into report (row) values (randomblob(120)); commit")
            } / .microseconds(1)
        }
        try say("agent: a report with names, p50", times, 0.5, "SQLite alone, a row of 120 bytes")
    }

    private static func say(
        _ name: String, _ times: [Double], _ part: Double, _ contestant: String = "stallwatch"
    ) throws {
        let sorted = times.sorted()
        try StoreBenchmark.say(
            name, contestant, [sorted[Int(Double(sorted.count - 1) * part)]], "us")
    }
}
