// Writers and ingests that are killed at random points, with the stores of ten rounds in one
// directory.

import Foundation
import StallModel
import StallArchive
import StallIngest
import StallQuery
import StallStore
import TestSupport

enum KillRounds {
    static func run(_ count: Int, _ tally: inout Tally) throws {
        var random = SystemRandomNumberGenerator()
        var directory = ""
        var acknowledged = Acknowledged()
        var writers: [Child] = []
        defer { try? FileManager.default.removeItem(atPath: directory) }
        for round in 0..<count {
            if round % 10 == 0 {
                try? FileManager.default.removeItem(atPath: directory)
                directory = NSTemporaryDirectory() + "store-faults-\(UUID().uuidString)"
                try FileManager.default.createDirectory(
                    atPath: directory + "/agents", withIntermediateDirectories: true)
                acknowledged = Acknowledged()
            }
            let central = directory + "/central.sqlite"
            // Three rounds share a store, so that a killed agent's store is opened by the next one;
            // now and then two agents write it at the same time.
            let store = "\(directory)/agents/\(round / 3).sqlite"
            writers = try (0...Int.random(in: 0...1, using: &random)).map { _ in
                try Child("write", store)
            }
            let ingest = try Child("ingest", central, directory + "/agents")
            for child in writers.shuffled() {
                acknowledged.note(
                    child.kill(afterLines: .random(in: 0...40), and: .random(in: 0...3_000)))
            }
            _ = ingest.kill(afterLines: .random(in: 0...4), and: .random(in: 0...3_000))

            let job = try Ingest(into: central, grouper: PlainGrouper())
            let summary = try job.run([directory + "/agents"])
            for file in summary.files {
                guard case .skipped(let error) = file.outcome else { continue }
                // Killed before it was a store.
                if case .empty = error { continue }
                if case .notReady = error { continue }
                if case .foreign(_, 0) = error, acknowledged.reports.isEmpty { continue }
                tally.complain("\(error)", file.path)
            }
            try job.close()
            tally.rounds += 1
            tally.judge(central, acknowledged: acknowledged.reports)
            if FileManager.default.fileExists(atPath: store) {
                judge(store, acknowledged: [:], &tally)
            }
        }
    }

    /// The store of a killed agent, once the next agent has closed it.
    static func judge(_ store: String, acknowledged: [String: Bool], _ tally: inout Tally) {
        var random = SystemRandomNumberGenerator()
        do {
            let agent = try AgentStore(path: store, run: Victim.thisProcess(&random))
            try agent.closeAbandoned()
            try agent.close()
            tally.judge(store, acknowledged: acknowledged)
            let reports = try ReportStore.open(path: store).reports(ReportFilter())
            if reports.contains(where: { $0.state == .open }) {
                tally.complain("an open report of a dead process", store)
            }
        } catch {
            tally.complain("\(error)", store)
        }
    }
}
