import Foundation
import StallAnalysis
import StallArchive
import StallIngest
import StallModel
import StallQuery
import StallStore
import TestSupport
import Testing

@testable import stallctl

/// Goal: groups by system and by device are the same of any store, and unknown ones are one group.
/// Method: three runs on two systems and one without; agents' stores, one that ingested them, and both halves together.
@Suite struct MachineGroupTests {
    private struct Machine {
        var os, device: String?
        var count: Int
        var watched: Int64?
    }

    private static let machines = [
        Machine(os: "iOS 17.4.1", device: "iPhone14,2", count: 2, watched: 3600),
        Machine(os: "iOS 17.4.1", device: "iPhone15,4", count: 3, watched: 7200),
        Machine(os: nil, device: nil, count: 4, watched: 3600),
        Machine(os: "Debian GNU/Linux 12", device: nil, count: 1, watched: nil),
    ]

    private func withStores(_ body: (_ agents: [String], _ central: String) throws -> Void) throws {
        try withTemporaryDirectory { directory in
            var agents: [String] = []
            for (number, machine) in Self.machines.enumerated() {
                var run = SampleReports.run(number: 900 + UInt64(number))
                (run.os, run.device) = (machine.os, machine.device)
                let reports = (0..<machine.count).map { index in
                    SampleReports.report(
                        UInt64(number * 10 + index + 1), run: run,
                        startingAfter: Int64(index) * 40_000, lasting: 1000)
                }
                let path = directory.appending(path: "agent\(number)")
                try SampleReports.writeStore(at: path, reports, run: run)
                if let watched = machine.watched {
                    let store = try AgentStore(path: path.path, run: run)
                    try store.record(
                        LoopExposure(
                            run: run, loop: "main", threshold: .milliseconds(250),
                            start: SampleReports.noon, watched: .seconds(watched)))
                    try store.close()
                }
                agents.append(path.path)
            }
            let central = directory.appending(path: "central").path
            let ingest = try Ingest(into: central, grouper: DefaultGrouper())
            #expect(try ingest.run(agents).addedCount == 10)
            try ingest.close()
            try body(agents, central)
        }
    }

    private func lines(
        _ store: any QueryableStore, _ key: GroupKey, exactLimit: Int = 5000
    ) throws -> [String] {
        var question = RankingQuestion(store: store, by: key)
        question.exactLimit = exactLimit
        let ranking = try question.ranking(by: .count, limit: 100)
        #expect(ranking.overview.stallCount == 10)
        return ranking.groups.map {
            "\($0.title): \($0.count), \($0.ratePerHour.map { "\($0.rounded())" } ?? "-")"
        }
    }

    @Test func `every store tells the same groups`() throws {
        try withStores { agents, central in
            let stores: [any QueryableStore] = [
                try ReportStore.open(path: central), try MergedStore(paths: agents),
                try MergedStore(paths: agents.reversed()),
            ]
            for store in stores {
                for limit in [0, 5000] {
                    // Milliseconds lost in an hour of all loops of that system.
                    #expect(
                        try lines(store, .os, exactLimit: limit) == [
                            "iOS 17.4.1: 5, 1667.0", "unknown os: 4, 4000.0",
                            "Debian GNU/Linux 12: 1, -",
                        ])
                    #expect(
                        try lines(store, .device, exactLimit: limit) == [
                            "unknown device: 5, 4000.0", "iPhone15,4: 3, 1500.0",
                            "iPhone14,2: 2, 2000.0",
                        ])
                }
            }
        }
    }

    @Test func `rows keep a run's machine, and an old line has none`() throws {
        try withStores { _, central in
            let folder = URL(filePath: central).deletingLastPathComponent()
            let lines = folder.appending(path: "lines.jsonl").path
            var text = try Oracle.stallctl(
                ["export", "--format", "jsonl", "--store", central], in: folder
            )
            .output
            #expect(text.contains("\"device\":\"iPhone14,2\""))
            #expect(text.contains("\"os\":null"))
            func ingested() throws -> [String] {
                try text.write(toFile: lines, atomically: true, encoding: .utf8)
                let copy = folder.appending(path: UUID().uuidString).path
                let result = try Oracle.stallctl(["ingest", "--store", copy, lines], in: folder)
                #expect(result.status == 0, "\(result.errors)")
                return try self.lines(ReportStore.open(path: copy), .os)
                    .map { String($0.prefix { $0 != "," }) }
            }
            #expect(
                try ingested() == [
                    "iOS 17.4.1: 5", "unknown os: 4", "Debian GNU/Linux 12: 1",
                ])
            text.replace(/"(os|device)":("[^"]*"|null),/, with: "")
            #expect(try ingested() == ["unknown os: 10"])
        }
    }

    @Test func `lists and reports show the machine`() throws {
        try withStores { _, central in
            let folder = URL(filePath: central).deletingLastPathComponent()
            func output(_ words: [String]) throws -> String {
                try Oracle.stallctl(words + ["--store", central], in: folder).output
            }
            let list = try output(["list", "--csv"]).split(whereSeparator: \.isNewline)
            #expect(list[0].hasSuffix("cause,ending,os,device"))
            #expect(list.count { $0.hasSuffix(",iOS 17.4.1,\"iPhone15,4\"") } == 3)
            let export = try output(["export", "--format", "csv"]).split(
                whereSeparator: \.isNewline)
            #expect(export[0].hasSuffix(",own_ms,os,device"))
            #expect(export.count { $0.hasSuffix(",iOS 17.4.1,\"iPhone15,4\"") } == 3)
            #expect(try output(["list"]).contains("DEVICE"))
            let id = SampleReports.id(1).description
            #expect(try output(["show", id]).contains("web-2, iOS 17.4.1, iPhone14,2"))
            let apple = try output(["show", id, "--format", "apple"])
            #expect(apple.contains("Hardware Model:      iPhone14,2\n"))
            #expect(apple.contains("OS Version:          iOS 17.4.1\n"))
        }
    }

    @Test func `a run's machine is what its checksum covers`() throws {
        try withStores { _, central in
            #expect(try checkStore(path: central).isEmpty)
            for change in ["os = 'iOS 1'", "device = null"] {
                let copy = central + change
                try FileManager.default.copyItem(atPath: central, toPath: copy)
                let connection = try Connection(to: copy, as: copy, .readWrite)
                try connection.execute(
                    "update process_run set \(change) where device = 'iPhone14,2'")
                try connection.close()
                let faults = try checkStore(path: copy).map(\.description)
                #expect(faults.count == 1 && faults[0].contains("checksum mismatch"), "\(faults)")
            }
        }
    }

    @Test func `of a pruned store a note says that reports are missing`() throws {
        try withStores { _, central in
            let folder = URL(filePath: central).deletingLastPathComponent()
            let prune = try Oracle.stallctl(
                ["prune", "--store", central, "--older-than", "2024-11-22"], in: folder)
            #expect(prune.status == 0, "\(prune.errors)")
            for key in GroupKey.allCases {
                let top = try Oracle.stallctl(
                    ["top", "--group", key.rawValue, "--store", central], in: folder)
                #expect(top.errors.contains("were pruned") == key.needsReports, "\(key)")
            }
        }
    }
}
