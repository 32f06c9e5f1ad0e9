// Every operation of the disk fails once in turn, while an agent writes and a job ingests.

import CFaultyDisk
import Foundation
import StallIngest
import StallModel
import StallStore
import TestSupport

enum FailingOperations {
    /// - Parameter step: Every operation, or every so many.
    static func run(step: Int, _ tally: inout Tally) throws {
        guard faulty_disk_install() == 0 else {
            return tally.complain("not installed", "the failing disk")
        }
        for number in stride(from: UInt64(1), to: .max, by: step) {
            let directory = NSTemporaryDirectory() + "store-faults-\(UUID().uuidString)"
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: directory) }
            faulty_disk_fail_at(number)
            let (store, central) = (directory + "/agent.sqlite", directory + "/central.sqlite")
            let acknowledged = write(to: store)
            let skipped = ingest(store, into: central)
            let before = (tally.lost, tally.duplicate, tally.broken)
            let hasFailed = faulty_disk_count() >= number
            faulty_disk_fail_at(0)
            if let skipped { tally.complain("operation \(number): \(skipped)", store) }
            tally.judge(store, acknowledged: acknowledged)
            tally.judge(central, acknowledged: acknowledged)
            if before != (tally.lost, tally.duplicate, tally.broken) {
                say("  by operation \(number)")
            }
            // Nothing failed any more: the last operation has had its turn.
            guard hasFailed else { return }
            tally.rounds += 1
        }
    }

    /// Records three reports as an agent does, which opens its store again after a failure.
    private static func write(to path: String) -> [String: Bool] {
        var random = SystemRandomNumberGenerator()
        let run = Victim.thisProcess(&random)
        var acknowledged: [String: Bool] = [:]
        var store: AgentStore?
        func attempt(_ body: (AgentStore) throws -> Void) -> Bool {
            do {
                if store == nil { store = try AgentStore(path: path, run: run) }
                try body(store!)
                return true
            } catch {
                store = nil
                return false
            }
        }
        for _ in 0..<3 {
            var report = Victim.makeReport(run, &random)
            if attempt({ try $0.record(report, images: Victim.images) }) {
                acknowledged[report.id.description] = false
            }
            report.state = .ended
            // Once more if it failed: something is lost only if an agent gives up.
            for _ in 0..<2 where acknowledged[report.id.description] != true {
                if attempt({ try $0.record(report, images: Victim.images) }) {
                    acknowledged[report.id.description] = true
                }
            }
            _ = attempt { try Victim.name(report, in: $0) }
        }
        _ = attempt { try $0.close() }
        return acknowledged
    }

    /// Ingests, once more when it failed; why the store was skipped in the end.
    private static func ingest(_ store: String, into central: String) -> String? {
        var reason: String?
        for _ in 0..<2 {
            do {
                let job = try Ingest(into: central, grouper: PlainGrouper())
                let outcome = try job.run([store]).files.first?.outcome
                try job.close()
                guard case .skipped(let error)? = outcome else { return nil }
                reason = "\(error)"
            } catch {
                reason = "\(error)"
            }
        }
        return reason
    }
}
