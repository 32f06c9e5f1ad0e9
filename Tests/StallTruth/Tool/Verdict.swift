// Compares what the agent has stored with what the victims know.

import Foundation
import StallModel
import StallStore

/// What a part of the suite found. One line of JSON from the process that played it.
struct PartResult: Codable {
    var part: String
    var stalls = 0
    var missed = 0
    /// Things that are no stall, and how often one of them was called one.
    var healthy = 0
    var isFalse = 0
    /// How far off the agent was, in milliseconds: in when it noticed, and in the duration it stored.
    var noticed: [Double] = []
    var durations: [Double] = []
    /// Incidents that are kept under verdicts of their own.
    var others: [String: Int] = [:]
    var notes: [String] = []
}

extension PartResult {
    /// The wall clock of one part jumps by whole hours: starts are compared within the hour.
    private static let hour: Int64 = 3_600_000_000

    /// - Parameter measuresErrors: The machine had nothing else to do.
    init(part: String, truth: Truth, store: String, measuresErrors: Bool) throws {
        self.init(part: part)
        healthy = truth.healthyItems
        let reports = try ReportStore.open(path: store).reports(ReportFilter(), limit: nil)
        var episodes = Dictionary(grouping: truth.episodes, by: \.loop)
        for loop in episodes.keys { episodes[loop]!.sort { $0.start < $1.start } }
        var found: [String: Set<Int>] = [:]
        for report in reports {
            guard report.verdict == .stalled else {
                others["\(report.verdict)", default: 0] += 1
                continue
            }
            let length = report.duration.nanoseconds / 1000
            let own = episodes[report.loop] ?? []
            // How much later than the victim says the report begins, in -30...30 minutes.
            func lateness(_ index: Int) -> Int64 {
                (report.start.microseconds - own[index].start + Self.hour / 2) %% Self.hour
                    - Self.hour / 2
            }
            // The nearest: a short stall just before a long one is near enough to both.
            let match = own.indices.filter { index in
                own[index].isStall && abs(lateness(index)) < max(own[index].duration, length) / 2
                    && found[report.loop]?.contains(index) != true
            }.min { abs(lateness($0)) < abs(lateness($1)) }
            guard let match else {
                isFalse += 1
                if notes.count < 20 {
                    notes.append(
                        "false: \(report.loop) \(report.duration) cpu \(report.cpuTime) in \(report.phase)"
                    )
                }
                continue
            }
            found[report.loop, default: []].insert(match)
            guard measuresErrors else { continue }
            noticed.append(
                abs(Double(lateness(match)) / 1000 + report.detectionDelay.milliseconds))
            durations.append(abs(Double(length - own[match].duration)) / 1000)
        }
        for (loop, episodes) in episodes {
            for (index, episode) in episodes.enumerated() where episode.isStall {
                stalls += 1
                guard found[loop]?.contains(index) != true else { continue }
                missed += 1
                if notes.count < 20 {
                    notes.append(
                        "missed: \(loop) \(episode.duration) us of threshold \(episode.threshold)")
                }
            }
        }
    }
}

infix operator %% : MultiplicationPrecedence

/// The remainder that is never negative.
private func %% (value: Int64, divisor: Int64) -> Int64 { (value % divisor + divisor) % divisor }

/// The value below which this share of the sorted values lies.
func percentile(_ sorted: [Double], _ share: Double) -> Double {
    sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
}
