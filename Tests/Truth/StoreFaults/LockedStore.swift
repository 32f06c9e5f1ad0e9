// Another process holds an agent's store for longer than a statement waits (SQLITE_BUSY), and is killed.

import Glibc
import StallIngest
import StallModel
import StallStore
import TestSupport

enum LockedStore {
    static func run(_ count: Int, _ tally: inout Tally) throws {
        for _ in 0..<count {
            try withFaultDirectory { try round(in: $0, &tally) }
            tally.rounds += 1
        }
    }

    private static func round(in directory: String, _ tally: inout Tally) throws {
        let (store, central) = (directory + "/agent.sqlite", directory + "/central.sqlite")
        var random = SystemRandomNumberGenerator()
        let run = Victim.thisProcess(&random)
        let agent = try AgentStore(path: store, run: run, wait: .milliseconds(20))
        var acknowledged: [String: Bool] = [:]
        func record(_ report: StallReport) throws(StoreError) {
            var report = report
            report.state = .ended
            try agent.record(report, images: Victim.images)
            acknowledged[report.id.description] = true
        }
        try record(Victim.makeReport(run, &random))

        let holder = try Child("hold", store)
        holder.awaitLine()
        let late = Victim.makeReport(run, &random)
        do throws(StoreError) {
            try record(late)
            tally.complain("a report was written while another process held the store", store)
        } catch {
            if case .busy = error {} else { tally.complain("\(error)", store) }
        }
        // Another agent says the same, or waits for its first report with that.
        do throws(StoreError) {
            let other = try AgentStore(
                path: store, run: Victim.thisProcess(&random), wait: .milliseconds(20))
            try? other.close()
        } catch {
            if case .busy = error {} else { tally.complain("\(error)", store) }
        }
        // Who only reads does not wait.
        tally.judge(store, acknowledged: acknowledged)
        let job = try Ingest(into: central, grouper: PlainGrouper())
        if case .skipped(let error)? = try job.run([store]).files.first?.outcome {
            tally.complain("\(error)", store)
        }
        _ = holder.kill(afterLines: 0, and: 0)

        try record(late)
        try agent.close()
        _ = try job.run([store])
        try job.close()
        tally.judge(store, acknowledged: acknowledged)
        tally.judge(central, acknowledged: acknowledged)
    }
}
