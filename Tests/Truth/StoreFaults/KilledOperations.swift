// kill -9 within every operation of the disk in turn, and so within every statement: of an agent that writes, and of a
// job that ingests.

import Glibc
import StallIngest
import TestSupport

enum KilledOperations {
    /// - Parameter step: Every operation, or every so many.
    static func run(step: Int, _ tally: inout Tally) throws {
        for number in stride(from: 1, to: .max, by: step) {
            let isLast = try withFaultDirectory { directory in
                try killWriter(at: number, directory + "/agent.sqlite", &tally)
            }
            if isLast { break }
        }
        try withFaultDirectory { try killIngests(of: $0, step: step, &tally) }
    }

    /// - Returns: Whether the writer had fewer operations and ended itself.
    private static func killWriter(
        at number: Int, _ store: String, _ tally: inout Tally
    ) throws -> Bool {
        let end = try Child("die-at", "\(number)", "write", store, "2").end()
        var acknowledged = Acknowledged()
        acknowledged.note(end.lines)
        let before = tally
        // As it was left: with its log, and without recovery by another process.
        if !acknowledged.reports.isEmpty {
            tally.judge(store, acknowledged: acknowledged.reports)
        }
        KillRounds.judge(store, acknowledged: acknowledged.reports, &tally)
        return tally.note(end, before: before, "writer", number)
    }

    /// Each job starts with a central store of its own; the next job completes what was killed.
    private static func killIngests(
        of directory: String, step: Int, _ tally: inout Tally
    ) throws {
        let agents = directory + "/agents"
        guard mkdir(agents, 0o700) == 0 else { return tally.complain("no directory", agents) }
        var acknowledged = Acknowledged()
        for store in 0..<2 {
            acknowledged.note(try Child("write", "\(agents)/\(store).sqlite", "3").end().lines)
        }
        for number in stride(from: 1, to: .max, by: step) {
            let central = "\(directory)/central-\(number).sqlite"
            let end = try Child("die-at", "\(number)", "ingest", central, agents).end()
            let before = tally
            do {
                let job = try Ingest(into: central, grouper: PlainGrouper())
                for file in try job.run([agents]).files {
                    if case .skipped(let error) = file.outcome {
                        tally.complain("\(error)", file.path)
                    }
                }
                try job.close()
            } catch {
                tally.complain("\(error)", central)
            }
            tally.judge(central, acknowledged: acknowledged.reports)
            for suffix in ["", "-wal", "-shm", "-journal"] { unlink(central + suffix) }
            if tally.note(end, before: before, "ingest", number) { return }
        }
    }
}

extension Tally {
    /// Counts a round in which a child was to die in an operation.
    ///
    /// - Returns: Whether it ended itself, because it had fewer operations.
    fileprivate mutating func note(
        _ end: Child.End, before: Tally, _ who: String, _ number: Int
    ) -> Bool {
        if (before.lost, before.duplicate, before.broken) != (lost, duplicate, broken) {
            say("  by a kill of the \(who) in operation \(number)")
        }
        if let signal = end.signal, signal != SIGKILL {
            complain("\(who) ended by signal \(signal) in operation \(number)", "a child")
        }
        rounds += 1
        return end.signal != SIGKILL
    }
}
