// Holds the watchdog's reports of a simulated loop against what the loop did, by the rules of stall-truth
// (Tests/Truth/StallTruth/Tool/Verdict.swift).

internal import StallDetection
package import StallModel

/// The spans of a loop, and the watchdog's reports of them.
struct Judge {
    /// A span in which the loop was busy, in nanoseconds.
    struct Span: CustomStringConvertible {
        var began, ended: UInt64
        /// When the loop published its end, of which it had read the time before.
        var left: UInt64
        var threshold: UInt64
        /// The time that its thread computed or slept, and that the machine was paused meanwhile.
        var own, paused: UInt64
        /// From when the thread was last read before it until when it was first read in it.
        var unread: Range<UInt64>
        /// When the suspension probe was last read before it: a stop since then may have lasted into it.
        var probedBefore: UInt64
        /// How often all threads were kept from running, shortly before and behind it included.
        var suspensions = 0
        /// How long the thread waited for a CPU while it was not read and just behind the end, and the watchdog around
        /// all of it: the agent cannot tell on which side of an end such a wait was.
        var unknown: UInt64 = 0

        var length: UInt64 { ended - began }
        /// The agent polls at half the threshold and then at every eighth of it: the time up to the poll before each
        /// suspension may have been suspended as well, for all it knows, and the eighth after it.
        var mustBeCalledStall: Bool {
            let count = UInt64(suspensions)
            let unknown = unknown + (count == 0 ? 0 : threshold / 2 + count * threshold / 4)
            return own >= threshold + unknown
        }
        /// All but a sixty-fourth of the threshold is its own time: the agent's tolerance.
        var mayBeCalledStall: Bool { own + paused + unknown >= threshold - threshold / 64 }

        var description: String {
            "\(length / 1000) us at \(began), own \(own / 1000), paused \(paused / 1000), "
                + "\(suspensions) suspensions, unknown \(unknown / 1000), threshold \(threshold / 1000)"
        }
    }

    /// By their beginnings: the longer spans, the last report of each, and how often it was reported as ended.
    private var spans: [UInt64: Span] = [:]
    private var reports: [UInt64: StallIncident] = [:]
    private var ends: [UInt64: Int] = [:]
    private var count = 0
    /// As the watchdog counted them, and those that are shorter than the threshold.
    private var microStalls = 0
    private var shortMicroStalls: [Span] = []
    /// From when until when the watchdog has counted.
    private var counted: Range<UInt64>?

    mutating func note(_ span: Span) {
        count += 1
        if span.length >= 100_000_000, span.length < span.threshold {
            shortMicroStalls.append(span)
        }
        guard span.left - span.began >= span.threshold / 4 else { return }
        spans[span.began] = span
    }

    mutating func note(_ incident: StallIncident) {
        guard incident.verdict != .saturated else { return }
        reports[incident.began.nanoseconds] = incident
        if incident.hasEnded { ends[incident.began.nanoseconds, default: 0] += 1 }
    }

    mutating func note(_ measure: LoopMeasure) {
        microStalls += measure.microStallCount
        let began = counted?.lowerBound ?? measure.began.nanoseconds
        counted = began..<(measure.began + measure.watched).nanoseconds
    }

    /// The findings about the loop's spans, without those that the simulation has cut off.
    ///
    /// - Parameter isSabotaged: Every 20th report is left out.
    func findings(until end: UInt64, isSabotaged: Bool) -> Findings {
        var found = Findings()
        let reports = isSabotaged ? thinnedReports : reports
        found.spans = count
        for (began, report) in reports where report.ending != .stop { judge(report, began, &found) }
        for span in spans.values where span.left < end && span.mustBeCalledStall {
            found.planted += 1
            guard reports[span.began]?.verdict != .stalled else { continue }
            found.missed += 1
            let verdict = reports[span.began].map { ", called \($0.verdict)" } ?? ""
            found.note("missed: \(span)\(verdict)")
        }
        let counted = counted ?? 0..<0
        let unreported = spans.values.count {
            counted.contains($0.left) && $0.length >= $0.threshold && reports[$0.began] == nil
        }
        let shortMicroStalls = shortMicroStalls.count { counted.contains($0.left) }
        found.uncounted = max(0, unreported - (microStalls - shortMicroStalls))
        if found.uncounted > 0 {
            found.note(
                "uncounted: of \(unreported) spans, with \(microStalls) micro-stalls, "
                    + "\(shortMicroStalls) of them shorter than the threshold")
        }
        return found
    }

    private var thinnedReports: [UInt64: StallIncident] {
        let numbered = reports.sorted { $0.key < $1.key }.enumerated()
        return Dictionary(
            uniqueKeysWithValues: numbered.filter { $0.offset % 20 != 0 }.map(\.element))
    }

    private func judge(_ report: StallIncident, _ began: UInt64, _ found: inout Findings) {
        let text = "\(report.verdict) of \(report.duration), cpu \(report.cpuTime)"
        guard let span = spans[began] else {
            found.isFalse += 1
            return found.note("false: \(text) at \(began), of no span")
        }
        found.verdicts[report.verdict, default: 0] += 1
        if report.verdict == .stalled, !span.mayBeCalledStall {
            found.isFalse += 1
            found.note("false: \(text) of \(span)")
        }
        let lengths = span.length...span.left - began
        let isLength = lengths.contains(UInt64(report.duration.nanoseconds))
        if !report.hasEnded || ends[began] != 1 || !isLength {
            found.wrong += 1
            found.note("wrong: \(text) with \(ends[began] ?? 0) ends, of \(span)")
        }
    }
}

/// The differences between the spans of loops and a watchdog's reports.
package struct Findings: Sendable {
    /// Times that a loop was busy, and those of them that are stalls for sure.
    package var spans = 0, planted = 0
    /// Stalls that were not reported, and spans of the threshold's length that are neither in a report nor among the
    /// micro-stalls.
    package var missed = 0, uncounted = 0
    /// Reports of stalls that are none for sure, and reports whose length or number of ends is wrong.
    package var isFalse = 0, wrong = 0
    package var verdicts: [StallVerdict: Int] = [:]
    package var notes: [String] = []

    package init() {}

    package var isRight: Bool { missed + uncounted + isFalse + wrong == 0 }

    package static func += (left: inout Self, right: Self) {
        left.spans += right.spans
        left.planted += right.planted
        left.missed += right.missed
        left.uncounted += right.uncounted
        left.isFalse += right.isFalse
        left.wrong += right.wrong
        left.verdicts.merge(right.verdicts) { $0 + $1 }
        for note in right.notes { left.note(note) }
    }

    fileprivate mutating func note(_ text: String) {
        if notes.count < 20 { notes.append(text) }
    }
}
