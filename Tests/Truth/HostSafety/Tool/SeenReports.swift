// The stacks in a play's reports, as its callbacks receive them.

import Foundation
import StallAgent
import StallModel

final class SeenReports: @unchecked Sendable {
    // Unchecked because of the lock.
    struct Facts {
        var frames = 0
        var otherFrames = 0
        var failure = ""
        var unreadable = ""
        var namesHolder = false
    }
    private let lock = NSLock()
    private var reports: [Facts] = []

    var all: [Facts] { lock.withLock { reports } }

    func follow(_ monitor: StallMonitor) {
        monitor.onStall { [self] report in
            guard report.verdict != .blocking else { return }
            var facts = Facts()
            facts.frames = report.samples.map(\.frames.count).max() ?? 0
            facts.otherFrames = report.threads.map(\.frames.count).max() ?? 0
            facts.failure = report.samples.compactMap(\.failure).joined(separator: "; ")
            facts.unreadable =
                report.cause?.evidence.first { $0.name == "not readable" }?.value ?? ""
            facts.namesHolder = report.cause?.holder != nil
            lock.withLock { reports.append(facts) }
        }
    }

    func expect(_ isGood: (Facts) -> Bool) {
        for facts in all where !isGood(facts) { print("crashed blind: \(facts)") }
        if all.isEmpty { print("crashed no report") }
    }

    /// Whether a report has a stack. On a busy machine a thread that computes may have no CPU while it is asked.
    var haveStack: Bool { all.contains { $0.frames > 0 } }

    func expectStack() {
        if !haveStack { print("blind no stack: \(all)") }
    }
}
