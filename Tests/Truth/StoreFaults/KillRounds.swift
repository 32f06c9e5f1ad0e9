// Writers and ingests that are killed at random points, with the stores of ten rounds in one
// directory.

import Foundation
import StallModel
import StallArchive
import StallStore
import TestSupport

enum KillRounds {
    static func run(_ count: Int, _ tally: inout Tally) throws {
        var random = SystemRandomNumberGenerator()
        var directory = ""
        var acknowledged: [String: Bool] = [:]
        var writers: [Child] = []
        defer { try? FileManager.default.removeItem(atPath: directory) }
        for round in 0..<count {
            if round % 10 == 0 {
                try? FileManager.default.removeItem(atPath: directory)
                directory = NSTemporaryDirectory() + "store-faults-\(UUID().uuidString)"
                try FileManager.default.createDirectory(
                    atPath: directory + "/agents", withIntermediateDirectories: true)
                acknowledged = [:]
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
                for line in child.kill(afterLines: .random(in: 0...40), and: .random(in: 0...3_000))
                {
                    let words = line.split(separator: " ").map(String.init)
                    guard words.count == 2, words[0].count == 32 else { continue }
                    acknowledged[words[0]] = acknowledged[words[0]] == true || words[1] == "ended"
                }
            }
            _ = ingest.kill(afterLines: .random(in: 0...4), and: .random(in: 0...3_000))

            let job = try Ingest(into: central, grouper: PlainGrouper())
            let summary = try job.run([directory + "/agents"])
            for file in summary.files {
                guard case .skipped(let error) = file.outcome else { continue }
                // Killed before it was a store.
                if case .empty = error { continue }
                if case .foreign(_, 0) = error, acknowledged.isEmpty { continue }
                tally.complain("\(error)", file.path)
            }
            try job.close()
            tally.rounds += 1
            tally.judge(central, acknowledged: acknowledged)
            if FileManager.default.fileExists(atPath: store) { judge(store, &tally) }
        }
    }

    /// The store of a killed agent, as it is, and once the next agent has closed it.
    private static func judge(_ store: String, _ tally: inout Tally) {
        var random = SystemRandomNumberGenerator()
        do {
            let agent = try AgentStore(path: store, run: Victim.thisProcess(&random))
            try agent.closeAbandoned()
            try agent.close()
            tally.judge(store, acknowledged: [:])
            let reports = try ReportStore.open(path: store).reports(ReportFilter())
            if reports.contains(where: { $0.state == .open }) {
                tally.complain("an open report of a dead process", store)
            }
        } catch {
            tally.complain("\(error)", store)
        }
    }
}

/// This program once more, to be killed.
private struct Child {
    private let process = Process()
    private let output = Pipe()

    init(_ arguments: String...) throws {
        process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = arguments
        process.standardOutput = output
        try process.run()
    }

    /// Reads that many lines, waits that many microseconds, and kills. Answers every line that was
    /// whole.
    func kill(afterLines count: Int, and delay: UInt32) -> [String] {
        var text = Data()
        while text.count(where: { $0 == UInt8(ascii: "\n") }) < count {
            let more = output.fileHandleForReading.availableData
            if more.isEmpty { break }
            text += more
        }
        usleep(delay)
        Foundation.kill(process.processIdentifier, SIGKILL)
        text += (try? output.fileHandleForReading.readToEnd()) ?? Data()
        process.waitUntilExit()
        let lines = String(decoding: text, as: UTF8.self)
            .split(separator: "\n", omittingEmptySubsequences: false)
        return lines.dropLast().map(String.init)
    }
}
