import Foundation
import StallAnalysis
import StallModel
import StallQuery
import StallStore
import TestSupport
import Testing

@testable import stallctl

/// Goal: what stallctl says is of the reports, not of the way they came; its parts add up to the whole.
/// Method: random fleets with many ties, taken into stores in several ways, and the bytes that commands write of each.
@Suite struct StorePropertiesTests {
    private func stallctl(_ arguments: [String], in directory: URL) throws -> ProgramResult {
        try Oracle.stallctl(arguments, in: directory)
    }

    private func objects(_ arguments: [String], in directory: URL) throws -> [[String: Any]] {
        let result = try stallctl(arguments, in: directory)
        #expect(result.status == 0, "\(arguments) \(result.errors)")
        return try Oracle.objects(result.output)
    }

    private func made(_ name: String, in directory: URL) throws -> URL {
        let url = directory.appending(path: name)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        return url
    }

    /// Writes the fleet as an agent's store for each process, `agent0` and so on.
    private func write(_ fleet: MadeUpFleet, in directory: URL) throws -> [String] {
        try fleet.runs.indices.map { index in
            let path = directory.appending(path: "agent\(index)").path
            try fleet.write([index], to: path)
            return path
        }
    }

    /// Shows the first line that differs: whole outputs fill the screen.
    private func expectSame(
        _ found: String, _ right: String, _ place: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        guard found != right else { return }
        let lines = [found, right].map {
            $0.split(separator: "\n", omittingEmptySubsequences: false)
        }
        let index = zip(lines[0], lines[1]).enumerated().first { $1.0 != $1.1 }?.offset
        let shown = lines.map {
            $0.dropFirst(index ?? 0).first.map { String($0.prefix(2000)) } ?? ""
        }
        Issue.record(
            "\(place): line \(index ?? -1):\n\(shown[0])\ninstead of\n\(shown[1])",
            sourceLocation: sourceLocation)
    }

    // MARK: The way that reports came

    /// Each way makes a store `c` of the same reports in a directory of its own.
    private enum Way: CaseIterable {
        case backwards, oneByOne, lines, linesAndStores, centralStores, beside

        func make(_ agents: [String], at central: String, seed: UInt64) throws {
            var random = SeededGenerator(seed: seed)
            switch self {
            case .backwards: try ingest(agents.reversed(), into: central)
            case .oneByOne:
                for agent in agents.shuffled(using: &random) { try ingest([agent], into: central) }
                try ingest(agents, into: central)
            case .lines:
                var lines = try agents.flatMap(allLines).shuffled(using: &random)
                while !lines.isEmpty {
                    let part = lines.prefix(Int.random(in: 1...150, using: &random))
                    try ingest(lines: Array(part), into: central)
                    lines.removeFirst(part.count)
                }
            case .linesAndStores:
                let lines = try agents.flatMap(allLines).filter { _ in Bool.random(using: &random) }
                try ingest(lines: lines, into: central)
                try ingest(agents, into: central)
                try ingest(lines: lines.reversed(), into: central)
            case .centralStores:
                try ingest(Array(agents[..<2]), into: central + "-1")
                try ingest(Array(agents[1...]), into: central + "-2")
                try ingest([central + "-2", central + "-1"], into: central)
            case .beside:
                for agent in agents {
                    try StorePropertiesTests.spoil(agent, at: central + "-false", &random)
                    try ingest([central + "-false"], into: central)
                    try ingest([agent], into: central)
                    try FileManager.default.removeItem(atPath: central + "-false")
                }
            }
        }
    }

    /// A store of another app that says to be the same store and the same process, and lies about both.
    private static func spoil(
        _ agent: String, at path: String, _ random: inout SeededGenerator
    ) throws {
        var stranger = ReportGenerator(seed: random.next(), app: "stranger")
        let store = try AgentStore(path: path, run: stranger.run)
        for _ in 0..<5 { try store.record(stranger.report(state: .ended), images: stranger.images) }
        try store.record(
            LoopExposure(
                run: stranger.run, loop: "main", threshold: .milliseconds(250),
                start: UnixTime(microseconds: MadeUpFleet.begin), watched: .seconds(399 * 86_400)))
        try store.countLosses(1_000_000, reason: .dropped)
        try store.close()
        let connection = try Connection(to: path, as: path, .readWrite)
        try connection.execute(
            """
            attach '\(agent)' as honest;
            update source set store = (select store from honest.source),
                revision = revision + \(Int.random(in: 0...9, using: &random) * 100);
            update process_run set checksum = null,
                uuid = (select uuid from honest.process_run);
            """)
        try connection.close()
    }

    private static let commands: [[String]] =
        GroupKey.allCases.map { ["top", "--json", "--limit", "1000", "--group", $0.rawValue] }
        + [
            ["top", "--csv", "--by", "p95"], ["top", "--csv", "--by", "rate"],
            ["top", "--limit", "3"],
            ["list", "--json", "--limit", "1000"], ["list", "--csv", "--sort", "lasted"],
            ["list", "--limit", "5"], ["list", "save()", "--csv"],
            ["tree", "--csv", "--min-share", "0"],
            ["tree", "--csv", "--invert", "--frames", "all", "--min-share", "0"], ["tree"],
            ["trend", "--csv"], ["trend", "--json", "--by", "hour"], ["trend", "save()", "--csv"],
            ["diff", "1.0", "2.0", "--json"], ["diff", "2.0", "1.0"],
            ["show", "1", "--json"], ["why", "2"],
            ["export", "--format", "csv"], ["export", "--format", "csv", "--rows", "groups"],
            ["export", "--format", "csv", "--rows", "frames"], ["export", "--format", "jsonl"],
            ["export", "--format", "folded"],
            ["export", "--format", "pprof", "-o", "profile"],
        ]
        + ["chrome-trace", "speedscope", "perf-script", "firefox"].flatMap {
            [["export", "--format", $0], ["export", "--format", $0, "--limit", "7"]]
        }

    /// A command's output: status, both streams, and the file `profile` where it is the last word before the store.
    private func everything(_ words: [String], in directory: URL) throws -> String {
        let profile = directory.appending(path: "profile")
        try? FileManager.default.removeItem(at: profile)
        let result = try stallctl(words, in: directory)
        let bytes = (try? Data(contentsOf: profile)) ?? Data()
        return "\(result.status)\n\(result.output)\(result.errors)\(bytes.base64EncodedString())"
    }

    /// What a command writes of the honest apps.
    private func answer(_ words: [String], in directory: URL) throws -> String {
        let apps = ["--store", "c", "--app", "photos", "--app", "mail"]
        let takesFilter = !["show", "why"].contains(words[0])
        let result = try stallctl(
            words + (takesFilter ? apps : ["--store", "c"]), in: directory)
        #expect(result.status == 0, "\(words) \(result.errors)")
        guard words.last == "profile" else { return result.output + result.errors }
        let bytes = try Data(contentsOf: directory.appending(path: "profile"))
        return bytes.base64EncodedString()
    }

    @Test(arguments: 1...1 as ClosedRange<UInt64>)
    func `reports say the same whichever way they came`(seed: UInt64) throws {
        try withTemporaryDirectory { directory in
            let agents = try write(
                MadeUpFleet(seed: seed, reportsOfRun: 40, hasTies: true), in: directory)
            let plain = try made("plain", in: directory)
            try ingest(agents, into: plain.appending(path: "c").path)
            let expected = try Self.commands.map { try answer($0, in: plain) }
            for way in Way.allCases {
                let other = try made("\(way)", in: directory)
                try way.make(agents, at: other.appending(path: "c").path, seed: seed)
                for (words, right) in zip(Self.commands, expected) {
                    // Ranks are among all groups of a store, the stranger's too.
                    if way == .beside, ["show", "why"].contains(words[0]) { continue }
                    expectSame(try answer(words, in: other), right, "\(way) \(words)")
                }
                #expect(try stallctl(["check", "--store", "c"], in: other).status == 0)
            }
        }
    }

    // MARK: Several stores

    @Test(arguments: 3...3 as ClosedRange<UInt64>)
    func `two stores say what one says that has both`(seed: UInt64) throws {
        try withTemporaryDirectory { directory in
            let agents = try write(
                MadeUpFleet(seed: seed, reportsOfRun: 40, hasTies: true), in: directory)
            func path(_ name: String) -> String { directory.appending(path: name).path }
            try ingest(agents, into: path("c"))
            try ingest([agents[0], agents[3]], into: path("a"))
            try ingest([agents[1], agents[2]], into: path("b"))
            let commands = Self.commands.filter { ["top", "trend", "diff"].contains($0[0]) }
                .filter { $0.contains("--json") || $0.contains("--csv") }
            for words in commands {
                for filter in [[], ["--host", "web-1"], ["--since", "2024-12-01T07:00Z"]] {
                    let one = try stallctl(words + filter + ["--store", "c"], in: directory)
                    for stores in [["a", "b"], ["b", "a"]] {
                        let both = try stallctl(
                            words + filter + stores.flatMap { ["--store", $0] }, in: directory)
                        expectSame(both.output, one.output, "\(words) \(filter) \(stores)")
                        #expect(both.status == one.status, "\(words) \(filter) \(stores)")
                    }
                }
            }
            for words in Self.commands where !commands.contains(words) {
                let one = try everything(words + ["--store", "c"], in: directory)
                for stores in [["a", "b"], ["b", "a"]] {
                    let both = try everything(
                        words + stores.flatMap { ["--store", $0] }, in: directory)
                    // Never the answer of one of them.
                    if !["top", "trend", "diff"].contains(words[0]) {
                        #expect(both.hasPrefix("64\n"), "\(words)")
                        #expect(both.contains("needs one --store; there were 2"), "\(words)")
                        continue
                    }
                    // The hints below name the stores, and commands that take several.
                    func table(_ text: String) -> String {
                        let hints = text.firstRange(of: "\nNext: ")
                        return String(hints.map { text[..<$0.lowerBound] } ?? text[...])
                    }
                    expectSame(table(both), table(one), "\(words) \(stores)")
                }
            }
            let one = try objects(["status", "--json", "--store", "c"], in: directory)[0]
            let both = try objects(
                ["status", "--json", "--store", "a", "--store", "b"], in: directory)[0]
            // Rows of the file, which two stores have twice.
            let ofFile: Set = ["store", "path", "bytes", "stack_count", "roll_up_count"]
            for key in one.keys where !ofFile.contains(key) {
                let values = try [one[key]!, both[key] ?? 0].map {
                    String(
                        decoding: try JSONSerialization.data(
                            withJSONObject: [$0], options: .sortedKeys), as: UTF8.self)
                }
                #expect(values[0] == values[1], "\(key)")
            }
        }
    }

    // MARK: Comparisons

    @Test(arguments: 5...5 as ClosedRange<UInt64>)
    func `diff of B and A is the mirror image of diff of A and B`(seed: UInt64) throws {
        try withTemporaryDirectory { directory in
            let agents = try write(
                MadeUpFleet(seed: seed, reportsOfRun: 40, hasTies: true), in: directory)
            try ingest(agents, into: directory.appending(path: "c").path)
            let opposite = ["worse": "better", "better": "worse", "new": "gone", "gone": "new"]
            for (first, second) in [("1.0", "2.0"), ("..2024-12-05", "2024-12-05..")] {
                for key in ["signature", "cause", "loop", "app"] {
                    func rows(_ sides: [String]) throws -> [String: [String: Any]] {
                        let rows = try objects(
                            ["diff", "--json", "--store", "c", "--group", key] + sides,
                            in: directory)
                        return Dictionary(
                            uniqueKeysWithValues: rows.map {
                                ($0["signature"] as? String ?? "total", $0)
                            })
                    }
                    let (there, back) = (try rows([first, second]), try rows([second, first]))
                    #expect(Set(there.keys) == Set(back.keys))
                    for (group, row) in there {
                        let other = try #require(back[group])
                        for name in ["count", "total_ms", "compared_count", "compared_total_ms"] {
                            #expect(
                                "\(row[name + "_a"] ?? "")" == "\(other[name + "_b"] ?? "")",
                                "\(group) \(name)")
                        }
                        for name in ["significant", "cannot_tell", "unit"] {
                            #expect(
                                "\(row[name] ?? "")" == "\(other[name] ?? "")", "\(group) \(name)")
                        }
                        for name in ["units", "rate_ms_per_hour"] {
                            for (side, otherSide) in [("_a", "_b"), ("_b", "_a")] {
                                let (one, two) = (row[name + side], other[name + otherSide])
                                #expect("\(one ?? "")" == "\(two ?? "")", "\(group) \(name)")
                            }
                        }
                        for (bound, otherBound) in [
                            ("ratio_low", "ratio_high"), ("ratio_high", "ratio_low"),
                        ] {
                            guard let edge = row[bound] as? Double, edge > 0 else { continue }
                            // The other way round, no bound is none either.
                            let inverse = try #require(other[otherBound] as? Double, "\(group)")
                            #expect(abs(edge * inverse - 1) < 1e-3, "\(group) \(bound)")
                        }
                        let change = try #require(row["change"] as? String)
                        #expect(
                            other["change"] as? String == opposite[change] ?? change, "\(group)")
                        if let ratio = row["ratio"] as? Double, ratio > 0 {
                            let inverse = try #require(other["ratio"] as? Double)
                            #expect(abs(ratio * inverse - 1) < 1e-3, "\(group) \(ratio) \(inverse)")
                        }
                    }
                }
            }
        }
    }

    // MARK: Sums

    @Test(arguments: 7...7 as ClosedRange<UInt64>, [false, true])
    func `parts add up to the whole`(seed: UInt64, isPruned: Bool) throws {
        try withTemporaryDirectory { directory in
            let agents = try write(
                MadeUpFleet(seed: seed, reportsOfRun: 40, hasTies: true), in: directory)
            try ingest(agents, into: directory.appending(path: "c").path)
            let middle = "2024-12-09"
            if isPruned {
                _ = try stallctl(
                    ["prune", "--store", "c", "--older-than", middle], in: directory)
            }
            struct Sum: Equatable {
                var count = 0
                var microseconds = 0
                init() {}
                init(_ rows: [[String: Any]]) {
                    for row in rows {
                        count += row["count"] as? Int ?? 0
                        microseconds += Int(((row["total_ms"] as? Double ?? 0) * 1000).rounded())
                    }
                }
                mutating func add(_ other: Sum) {
                    count += other.count
                    microseconds += other.microseconds
                }
            }
            func top(_ words: [String]) throws -> [[String: Any]] {
                try objects(
                    ["top", "--json", "--limit", "10000", "--store", "c"] + words, in: directory)
            }
            let whole = Sum(try top([]))
            #expect(whole.count > 50)
            for key in GroupKey.allCases {
                let rows = try top(["--group", key.rawValue])
                for row in rows {
                    let share = try #require(row["share"] as? Double)
                    #expect((0...1).contains(share), "\(key) \(share)")
                    #expect(row["count"] as? Int ?? .max <= whole.count)
                    let parts = row["trend_ms"] as? [Double] ?? []
                    let total = try #require(row["total_ms"] as? Double)
                    #expect(
                        parts.isEmpty || abs(parts.reduce(0, +) - total) < 0.01, "\(key) \(row)")
                }
                guard key != .inclusive else { continue }
                // Groups that no roll-up has are those of the reports that are left.
                let sum = Sum(rows)
                if isPruned, key.needsReports {
                    #expect(0 < sum.count && sum.count < whole.count, "\(key)")
                } else {
                    #expect(sum == whole, "\(key)")
                }
            }
            let divisions: [(option: String, values: [String])] =
                [
                    ("--app", ["photos", "mail"]), ("--version", ["1.0", "2.0"]),
                    ("--loop", ["main", "decoder", ""]),
                ] + (isPruned ? [] : [("--host", ["web-1", "web-2"])])
            for (option, values) in divisions {
                var sum = Sum()
                for value in values { sum.add(Sum(try top(["\(option)=\(value)"]))) }
                #expect(sum == whole, "\(option)")
            }
            for day in ["2024-12-01", "2024-12-20"] + (isPruned ? [] : ["2024-12-07T07:30:00Z"]) {
                var parts = Sum(try top(["--until", day]))
                parts.add(Sum(try top(["--since", day])))
                #expect(parts == whole, "\(day)")
            }
            for words in [["trend"], ["trend", "--by", "day"]]
                + (isPruned ? [] : [["trend", "--by", "hour"]])
            {
                let rows = try objects(words + ["--json", "--store", "c"], in: directory)
                #expect(Sum(rows) == whole, "\(words)")
            }
            guard !isPruned else { return }
            let list = try objects(
                ["list", "--json", "--limit", "10000", "--store", "c"], in: directory)
            #expect(list.count { $0["verdict"] as? String == "stalled" } == whole.count)
            for words in [[], ["--invert"], ["--frames", "all"], ["--frames", "app", "--invert"]] {
                let rows = try objects(
                    ["tree", "--json", "--min-share", "0", "--store", "c"] + words, in: directory)
                // A function in two samples of one stall is one stall.
                var (below, own): ([Int: Int], [Int: Int]) = ([:], [:])
                for row in rows {
                    let node = try #require(row["node"] as? Int)
                    let time = Int((try #require(row["total_ms"] as? Double) * 1000).rounded())
                    own[node] = time
                    below[row["parent"] as? Int ?? -1, default: 0] += time
                    #expect(row["count"] as? Int ?? .max <= whole.count)
                    #expect((0...1).contains(try #require(row["share"] as? Double)))
                }
                for (parent, time) in below where parent >= 0 {
                    #expect(time <= own[parent]! + rows.count, "\(words) \(parent)")
                }
                #expect(below[-1] ?? 0 <= whole.microseconds + rows.count)
            }
        }
    }
}
