import Foundation
import StallModel
import StallStore
import TestSupport
import Testing

@testable import stallctl

/// Goal: `top` counts what of a stall was its thread's own time and says the rest, wherever the report comes from.
/// Method: three stalls of 900 ms, of which 600 ms were waits for a CPU, and one of 1 s in another function; every way
/// from an agent's store to a ranking.
@Suite struct OwnTimeTests {
    private func write(to url: URL, delayed: Int = 600) throws {
        var reports = (1...3).map { number in
            SampleReports.report(
                number, startingAfter: Int64(number), lasting: 900,
                samples: [SampleReports.sample(at: 125, for: 900, SampleReports.waiting)])
        }
        for index in reports.indices { reports[index].delayedTime = .milliseconds(delayed) }
        reports.append(
            SampleReports.report(
                4, startingAfter: 9, lasting: 1000,
                samples: [SampleReports.sample(at: 125, for: 1000, SampleReports.computing)]))
        try SampleReports.writeStore(at: url, reports)
    }

    private func top(_ store: String, _ arguments: [String] = [], in directory: URL) throws
        -> [[String: Any]]
    {
        try Oracle.objects(
            try Oracle.stallctl(["top", "--json", "--store", store] + arguments, in: directory)
                .output)
    }

    /// Of each group: total, own time, count and longest.
    private let expected = [[1000, 1000, 1, 1000], [2700, 900, 3, 900]] as [[Double]]

    private func numbers(_ rows: [[String: Any]]) -> [[Double]] {
        rows.map { row in
            ["total_ms", "own_ms", "count", "max_ms"].map { row[$0] as? Double ?? .nan }
        }
    }

    @Test func `every store ranks by own time`() throws {
        try withTemporaryDirectory { directory in
            try write(to: directory.appending(path: "agent.sqlite"))
            func stallctl(_ arguments: String...) throws {
                let result = try Oracle.stallctl(arguments, in: directory)
                #expect(result.status == 0, "\(result.errors)")
            }
            try stallctl("ingest", "--store", "central.sqlite", "agent.sqlite")
            try stallctl(
                "export", "--format", "jsonl", "--store", "agent.sqlite", "--output", "lines.jsonl")
            try stallctl("ingest", "--store", "of-lines.sqlite", "lines.jsonl")
            for store in ["agent.sqlite", "central.sqlite", "of-lines.sqlite"] {
                #expect(try numbers(top(store, in: directory)) == expected, "\(store)")
                let check = try Oracle.stallctl(["check", "--store", store], in: directory)
                #expect(check.output.hasSuffix(": no problems found\n"), "\(check.output)")
            }
            let other = directory.appending(path: "other.sqlite")
            try SampleReports.writeStore(
                at: other, [], run: SampleReports.run(app: "mail", number: 901))
            #expect(
                try numbers(top("agent.sqlite", ["--store", "other.sqlite"], in: directory))
                    == expected)
            // From roll-ups: the reports are gone.
            try stallctl("prune", "--store", "central.sqlite", "--older-than", "2024-12-01")
            #expect(try numbers(top("central.sqlite", in: directory)) == expected)
            let byFunction = try top("agent.sqlite", ["--group", "inclusive"], in: directory)
            let waiting = byFunction.first { ($0["title"] as? String) == "waitForWorker()" }
            #expect(waiting?["own_ms"] as? Double == 900)
        }
    }

    /// A report may come with a line of an older program, which does not say it, and with its store.
    @Test(arguments: [["bare.jsonl", "agent.sqlite"], ["agent.sqlite", "bare.jsonl"]])
    func `two copies of a report are one, whether both say it or one`(order: [String]) throws {
        try withTemporaryDirectory { directory in
            try write(to: directory.appending(path: "agent.sqlite"))
            let lines = try Oracle.stallctl(
                ["export", "--format", "jsonl", "--store", "agent.sqlite"], in: directory
            ).output
            #expect(lines.contains(#""own_ms":300,"#) && lines.contains(#""own_ms":null,"#))
            try lines.replacing(/"own_ms":[0-9a-z.]+,/, with: "")
                .replacing(/,"store":"[0-9a-f]+"/, with: "").replacing(/"seq":[0-9]+,/, with: "")
                .write(
                    to: directory.appending(path: "bare.jsonl"), atomically: true, encoding: .utf8)
            for file in order {
                let result = try Oracle.stallctl(
                    ["ingest", "--store", "central.sqlite", file], in: directory)
                #expect(result.status == 0, "\(result.errors)")
            }
            let rows = try top("central.sqlite", in: directory)
            #expect(rows.reduce(0) { $0 + ($1["count"] as? Int ?? 0) } == 4)
            let check = try Oracle.stallctl(["check", "--store", "central.sqlite"], in: directory)
            #expect(check.output.hasSuffix(": no problems found\n"), "\(check.output)")
        }
    }

    @Test func `a share that cannot be is found, and repair keeps the report`() throws {
        try withTemporaryDirectory { directory in
            try write(to: directory.appending(path: "agent.sqlite"))
            func stallctl(_ arguments: String...) throws -> ProgramResult {
                try Oracle.stallctl(arguments, in: directory)
            }
            _ = try stallctl("ingest", "--store", "central.sqlite", "agent.sqlite")
            let script = """
                import sqlite3
                store = sqlite3.connect("\(directory.path)/central.sqlite")
                store.execute("update report set delayed_ns = duration_ns + 1 where seq = 1")
                store.execute("update rollup set delayed_ns = -5 where day_count = 1")
                store.commit()
                """
            _ = try Oracle.python(script, input: "")
            let top = try stallctl("top", "--store", "central.sqlite")
            #expect(top.status == 1 && top.errors.contains("a delay of"), "\(top)")
            #expect(try stallctl("check", "--store", "central.sqlite").status != 0)
            let repair = try stallctl("check", "--repair", "--store", "central.sqlite")
            #expect(repair.errors.isEmpty, "\(repair)")
            let check = try stallctl("check", "--store", "central.sqlite")
            #expect(check.output.hasSuffix(": no problems found\n"), "\(check)")
            let rows = try self.top("central.sqlite", in: directory)
            // All of the report counts whose share is lost.
            #expect(numbers(rows) == [[2700, 1500, 3, 900], [1000, 1000, 1, 1000]])
        }
    }

    @Test func `text, CSV and a report say what was not the thread's own`() throws {
        try withTemporaryDirectory { directory in
            try write(to: directory.appending(path: "agent.sqlite"))
            func output(_ arguments: String...) throws -> String {
                try Oracle.stallctl(arguments + ["--store", "agent.sqlite"], in: directory).output
            }
            let text = try output("top")
            #expect(text.contains("4 stalls in 2 groups, 1.9 s lost"), "\(text)")
            #expect(text.contains("(another 1.8 s starved or stopped)"), "\(text)")
            #expect(
                text.contains(
                    "Not counted: 1.8 s in which the threads of these stalls waited for a CPU or were stopped."
                ), "\(text)")
            let shown = try output("show", SampleReports.id(1).description)
            #expect(
                shown.contains(
                    "Its own time was 300 ms: for 600 ms (67 %) it waited for a CPU or was stopped."
                ),
                "\(shown)")
            let csv = try output("top", "--csv").split(whereSeparator: \.isNewline)
            #expect(csv[0].hasSuffix(",own_ms"))
            #expect(csv[1].hasSuffix(",1000.0") && csv[2].hasSuffix(",900.0"), "\(csv)")
            let reports = try output("export", "--format", "csv")
            #expect(reports.contains(",300.0") && reports.contains("holder_thread,own_ms"))
        }
    }
}
