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

    /// All since the last reset, once there are so many, or after two seconds.
    func wait(forCount count: Int) -> [StallReport] {
        changed.lock()
        defer { changed.unlock() }
        let end = Date(timeIntervalSinceNow: 2)
        while reports.count < count, changed.wait(until: end) {}
        return reports
    }

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
