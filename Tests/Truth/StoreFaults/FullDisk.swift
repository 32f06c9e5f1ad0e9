// A disk that another program fills while an agent writes and a job ingests, until there is space again.

import Foundation
import Glibc
import StallIngest
import StallModel
import StallStore
import TestSupport

enum FullDisk {
    static func run(_ count: Int, _ tally: inout Tally) throws {
        for _ in 0..<count {
            let directory = NSTemporaryDirectory() + "store-faults-\(UUID().uuidString)"
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true)
            defer { rmdir(directory) }
            let size = Int.random(in: 1_500_000...3_000_000)
            guard mount("tmpfs", directory, "tmpfs", 0, "size=\(size)") == 0 else {
                return say(
                    "skipped: a full disk; a small file system cannot be mounted here: "
                        + String(cString: strerror(errno)))
            }
            defer { umount2(directory, CInt(MNT_DETACH)) }
            // The other program's file makes it full: without it there is space for both stores.
            try round(in: directory, filler: size / 4 * 3, &tally)
            tally.rounds += 1
        }
    }

    private static func round(
        in directory: String, filler bytes: Int, _ tally: inout Tally
    ) throws {
        let (store, central) = (directory + "/agent.sqlite", directory + "/central.sqlite")
        let filler = directory + "/filler"
        try Data(count: bytes).write(to: URL(filePath: filler))
        var random = SystemRandomNumberGenerator()
        let run = Victim.thisProcess(&random)
        // Without reserved space nothing may be deleted: acknowledged reports must be there.
        var limits = StoreLimits()
        limits.reserveBytes = 0
        let agent = try AgentStore(path: store, run: run, limits: limits)
        var acknowledged: [String: Bool] = [:]
        func record() throws(StoreError) {
            var report = Victim.makeReport(run, &random)
            report.state = .ended
            try agent.record(report, images: Victim.images)
            acknowledged[report.id.description] = true
        }
        var isFull = false
        while !isFull {
            do throws(StoreError) { try record() } catch {
                guard case .full = error else { throw error }
                isFull = true
            }
            // Whether it can or not: on a full disk it says so and changes nothing.
            if Int.random(in: 0..<400) == 0 { try? ingest(store, into: central) }
        }
        try? ingest(store, into: central)
        for fault in try checkStore(path: store) { tally.complain("full: \(fault)", store) }

        unlink(filler)
        for _ in 0..<3 { try record() }
        try agent.close()
        try ingest(store, into: central)
        tally.judge(store, acknowledged: acknowledged)
        tally.judge(central, acknowledged: acknowledged)
    }

    private static func ingest(_ store: String, into central: String) throws {
        let job = try Ingest(into: central, grouper: PlainGrouper())
        let outcome = try job.run([store]).files.first?.outcome
        try job.close()
        if case .skipped(let error)? = outcome { throw error }
    }
}
