// Agents and jobs that may open 8 to 24 descriptors: what cannot be opened is an error, never a crash, a hang or a loss.

import Glibc
import StallIngest
import TestSupport

enum FewDescriptors {
    static func run(_ tally: inout Tally) throws {
        for count in 8...24 {
            try withFaultDirectory { directory in
                let (store, central) = (directory + "/agent.sqlite", directory + "/central.sqlite")
                var acknowledged = Acknowledged()
                let writer = try Child("files", "\(count)", "write", store, "3").end()
                acknowledged.note(writer.lines)
                let ingest = try Child("files", "\(count)", "ingest", central, store).end()
                for (end, path) in [(writer, store), (ingest, central)] {
                    if let signal = end.signal {
                        tally.complain("signal \(signal) with \(count) descriptors", path)
                    } else if count == 24, end.status != 0 {
                        tally.complain("\(count) descriptors are too few: \(end.lines)", path)
                    }
                }
                // Once there are descriptors again.
                KillRounds.judge(store, acknowledged: acknowledged.reports, &tally)
                let job = try Ingest(into: central, grouper: PlainGrouper())
                _ = try job.run([store])
                try job.close()
                tally.judge(central, acknowledged: acknowledged.reports)
                tally.rounds += 1
            }
        }
    }
}
