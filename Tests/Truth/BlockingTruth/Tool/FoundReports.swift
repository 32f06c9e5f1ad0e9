// The reports that were made since a plant.

import Foundation
import StallAgent
import StallModel

final class FoundReports: @unchecked Sendable {
    // Unchecked because the condition's lock guards the reports.
    private let changed = NSCondition()
    private var reports: [StallReport] = []

    func add(_ report: StallReport) {
        changed.lock()
        reports.append(report)
        changed.broadcast()
        changed.unlock()
    }

    func reset() {
        changed.lock()
        reports = []
        changed.unlock()
    }

    /// Waits up to two seconds for a report that is wanted; false if there was none.
    func wait(for isWanted: (StallReport) -> Bool) -> Bool {
        changed.lock()
        defer { changed.unlock() }
        let end = Date(timeIntervalSinceNow: 2)
        while !reports.contains(where: isWanted) {
            guard changed.wait(until: end) else { return false }
        }
        return true
    }

    /// All since the last reset.
    var all: [StallReport] {
        changed.lock()
        defer { changed.unlock() }
        return reports
    }
}

extension StallReport {
    func shows(_ function: String) -> Bool {
        samples.contains { sample in
            sample.frames.contains { $0.function?.contains(function) == true }
        }
    }

    /// The call and the innermost functions.
    var summary: String {
        let frames = samples.first?.frames.prefix(6).map(\.title) ?? []
        let call = cause?.evidence.first { $0.name == "blocking call" }?.value ?? "?"
        return call + ": " + frames.joined(separator: " < ")
    }
}
