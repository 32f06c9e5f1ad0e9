// The cost of queries to a central store of millions of reports, compared with SQLite reading every report once.

import CSQLite
import Foundation
import StallAnalysis
import StallModel
import StallArchive
import StallQuery

enum Questions {
    static func ask(_ path: String) throws {
        let database = try RawDatabase(path)
        let count = try database.integer("select count(*) from report")
        func say(_ what: String, _ times: [Double], _ contestant: String = "stallwatch") throws {
            try StoreBenchmark.say(what, contestant, size: count, times, "ms")
        }
        let scan = try times {
            _ = try database.integer("select sum(duration_ns) from report")
        }
        try say("sum of one column of every report", scan, "SQLite alone")
        let store = try ReportStore.open(path: path)
        func ask(
            _ what: String, _ filter: ReportFilter, _ key: GroupKey = .signature,
            withDays: Bool = false
        ) throws {
            var groups = 0
            let times = try times {
                groups = try store.aggregates(
                    AggregateQuestion(filter, by: key, withDays: withDays), grouper: rules
                ).groups.count
            }
            try say("\(what): \(groups) groups", times)
        }
        let last = UnixTime(microseconds: Fleet.start + 30 * 86_400_000_000)
        var app = ReportFilter()
        app.apps = ["app-3"]
        var week = app
        week.since = UnixTime(microseconds: last.microseconds - 7 * 86_400_000_000)
        var hours = ReportFilter()
        hours.since = UnixTime(microseconds: last.microseconds - 7_200_000_000)
        var version = app
        version.versions = ["2.3.0"]
        try ask("top", ReportFilter())
        try ask("top by version", ReportFilter(), .version)
        try ask("top with days", ReportFilter(), withDays: true)
        try ask("top of one app", app)
        try ask("top of one app, 7 days", week)
        try ask("top of the last two hours", hours)
        try ask("diff, one side of two versions", version)
        try say("list, newest 20", times { _ = try store.newest(.init(), count: 20) })
        let id = try store.newest(.init(), count: 1).reports[0].id.description
        try say("show, one by its id", times { _ = try store.report(idPrefix: id) })
    }

    /// Of three, in milliseconds.
    private static func times(_ body: () throws -> Void) rethrows -> [Double] {
        try (0..<3).map { _ in try ContinuousClock().measure(body) / .milliseconds(1) }
    }
}
