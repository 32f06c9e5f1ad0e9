// Compares what the agent has stored with what the victims recorded.
//
// A stall counts by its own time: its duration less its waits for a CPU, by the kernel's accounting, and its process's
// suspensions. Neither the victim nor the agent knows where in a sleep of the watchdog a suspension began, so a plant
// with suspensions must be reported only if that can make no difference; docs/truth.md has the limits.

import Foundation
import StallModel
import StallArchive
import StallQuery

/// The findings of a part of the suite. One line of JSON from its process.
struct PartResult: Codable {
    var part: String
    var stalls = 0
    var missed = 0
    /// Stalls that the loop alone had counted: the watchdog had no CPU.
    var afterwards = 0
    /// Things that are no stall, and how often one of them was called one.
    var healthy = 0
    var isFalse = 0
    /// How far off the agent was, in milliseconds: in when it noticed, and in the duration it stored.
    var noticed: [Double] = []
    var durations: [Double] = []
    /// How late sleeps of an unwatched thread ended meanwhile, in milliseconds: the lateness that a watchdog must
    /// expect.
    var oversleeps: [Double] = []
    /// Plants so near to the threshold that either verdict is right.
    var borderline = 0
    /// Reports of stalls, and those of them without any stack.
    var stallReports = 0
    var withoutStack = 0
    /// Incidents with verdicts of their own, and those that should have had another one.
    var others: [String: Int] = [:]
    var wrongVerdicts = 0
    var notes: [String] = []
}

extension PartResult {
    /// The wall clock of one part jumps by whole hours: starts are compared within the hour.
    private static let hour: Int64 = 3_600_000_000

    init(_ part: Part, truth: Truth, store: String, isPlayed: Bool) throws {
        self.init(part: part.name)
        healthy = truth.healthyItems
        oversleeps = truth.oversleeps
        var reports = try ReportStore.open(path: store).reports(ReportFilter(), limit: nil)
        if isSabotaged {
            reports = reports.enumerated().filter { $0.offset % 20 != 0 }.map(\.element)
        }
        var episodes = Dictionary(grouping: truth.episodes, by: \.loop)
        for loop in episodes.keys { episodes[loop]!.sort { $0.start < $1.start } }
        var found: [String: Set<Int>] = [:]
        for report in reports {
            let length = report.duration.nanoseconds / 1000
            if report.verdict == .stalled {
                stallReports += 1
                if report.samples.allSatisfy({ $0.method == nil }) {
                    withoutStack += 1
                    if part.isExtra {
                        let failures = Set(report.samples.compactMap(\.failure))
                        note(
                            "no stack: \(report.duration) cpu \(report.cpuTime) "
                                + "\(failures.sorted())")
                    }
                }
            }
            let own = episodes[report.loop] ?? []
            // How much later than the victim says the report begins, in -30...30 minutes.
            func lateness(_ episode: Episode) -> Int64 {
                (report.start.microseconds - episode.start + Self.hour / 2) %% Self.hour
                    - Self.hour / 2
            }
            guard report.verdict == .stalled else {
                others["\(report.verdict)", default: 0] += 1
                // Anywhere a thread may have lacked a CPU; then its owner knows.
                let near = own.filter { episode in
                    let late = lateness(episode)
                    let shared = min(episode.duration, late + length) - max(0, late)
                    return shared >= length / 2
                }
                // In no callout that the victims record, but on the way from one to the next: there is no better
                // knowledge.
                let wasQueued =
                    near.isEmpty
                    || near.contains { episode in
                        let (queued, stopped) = (episode.queued, episode.stopped(truth.stops))
                        let missing = length - report.threshold.nanoseconds / 1000 - 1000
                        return queued >= stopped && queued + stopped > missing
                    }
                let isRight =
                    part.verdicts.contains(report.verdict)
                    || report.verdict == .starved && wasQueued
                if !isRight {
                    wrongVerdicts += 1
                    note(
                        "verdict: \(report.loop) \(report.duration) cpu \(report.cpuTime) is called "
                            + "\(report.verdict), noticed \(report.detectionDelay) late"
                            + near.map { "; \(lateness($0)) us after \($0.described(truth.stops))" }
                            .joined())
                }
                continue
            }
            // The nearest: a short stall just before a long one is near enough to both. A callout that was to be short, and
            // was not, is a stall as well: a sleep may end late without having queued for a CPU.
            let match = own.indices.filter { index in
                own[index].mayBeCalledStall(truth.stops)
                    && abs(lateness(own[index])) < max(own[index].duration, length) / 2
                    && found[report.loop]?.contains(index) != true
            }.min { abs(lateness(own[$0])) < abs(lateness(own[$1])) }
            guard let match else {
                isFalse += 1
                note(
                    "false: \(report.loop) \(report.duration) cpu \(report.cpuTime) in \(report.phase), "
                        + "\(report.samples.count) samples, noticed \(report.detectionDelay) late"
                        + own.filter { abs(lateness($0)) < 2 * max(length, 500_000) }.map {
                            "; \(lateness($0)) us after \($0.described(truth.stops))"
                        }.joined())
                continue
            }
            found[report.loop, default: []].insert(match)
            guard own[match].isStall else {
                borderline += 1
                continue
            }
            if report.samples.isEmpty { afterwards += 1 }
            guard part.measuresErrors else { continue }
            noticed.append(
                abs(Double(lateness(own[match])) / 1000 + report.detectionDelay.milliseconds))
            durations.append(abs(Double(length - own[match].duration)) / 1000)
        }
        for (loop, episodes) in episodes {
            for (index, episode) in episodes.enumerated() where episode.isStall {
                guard episode.mustBeCalledStall(truth.stops) else {
                    borderline += 1
                    continue
                }
                stalls += 1
                guard found[loop]?.contains(index) != true else { continue }
                missed += 1
                note(
                    "missed: \(loop) threshold \(episode.threshold), \(episode.described(truth.stops))"
                        + reports.filter { $0.loop == loop }.map { report in
                            (report, (report.start.microseconds - episode.start) % Self.hour)
                        }.filter { abs($0.1) < 1_000_000 }.map { report, late in
                            "; \(late) us after it \(report.verdict) \(report.duration)"
                        }.joined())
            }
        }
        if let planted = part.verdicts.first, isPlayed, others["\(planted)"] == nil {
            wrongVerdicts += 1
            note("verdict: nothing was called \(planted)")
        }
    }

    /// A stall that is judged by the part itself.
    mutating func count(_ problem: String?) {
        stalls += 1
        guard let problem else { return }
        missed += 1
        note("missed: " + problem)
    }

    private mutating func note(_ text: String) {
        if notes.count < 20 { notes.append(text) }
    }
}

extension Episode {
    private var limit: Int64 { threshold.nanoseconds / 1000 }

    private func stops(in all: [Range<UInt64>]) -> [Range<UInt64>] {
        all.map { $0.clamped(to: began..<began + UInt64(duration)) }.filter { !$0.isEmpty }
    }

    func stopped(_ all: [Range<UInt64>]) -> Int64 {
        stops(in: all).reduce(0) { $0 + Int64($1.count) }
    }

    /// Details for looking into a wrong verdict. Microseconds, suspensions from its beginning on.
    func described(_ all: [Range<UInt64>]) -> String {
        let near = all.filter {
            $0.upperBound + 200_000 > began && $0.lowerBound < began + UInt64(duration) + 200_000
        }.map { "\(Int64($0.lowerBound) - Int64(began))..<\(Int64($0.upperBound) - Int64(began))" }
        return "\(isStall ? "stall" : "callout") of \(duration) us, queued \(queued), stopped "
            + "\(stopped(all)), stops near \(near)"
    }

    private func own(_ all: [Range<UInt64>]) -> Int64 { duration - queued - stopped(all) }

    /// Its own time is at least the threshold. The agent polls at half the threshold and then at every eighth of it:
    /// the time up to the poll before each suspension may have been suspended as well, for all it knows, and the eighth
    /// after it.
    func mustBeCalledStall(_ all: [Range<UInt64>]) -> Bool {
        let count = Int64(stops(in: all).count)
        let unknown = count == 0 ? 0 : limit / 2 + count * limit / 4
        return own(all) >= limit + unknown
    }

    /// All but a sixty-fourth of the threshold is its own time: the agent's tolerance. A thread is woken to be stopped,
    /// and its wait for a CPU on the way is in both accounts: with suspensions, no waits are subtracted. And it stops
    /// when the signal has reached it, not when it was sent: half a millisecond per suspension.
    func mayBeCalledStall(_ all: [Range<UInt64>]) -> Bool {
        let count = Int64(stops(in: all).count)
        let own = count == 0 ? own(all) : duration - stopped(all) + count * 500
        return own >= limit - limit / 64
    }
}

/// Something is broken on purpose.
let isSabotaged = ProcessInfo.processInfo.environment["SABOTAGE"] == "1"

infix operator %% : MultiplicationPrecedence

/// The remainder that is never negative.
private func %% (value: Int64, divisor: Int64) -> Int64 { (value % divisor + divisor) % divisor }

/// The value below which this share of the sorted values lies.
func percentile(_ sorted: [Double], _ share: Double) -> Double {
    sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
}
