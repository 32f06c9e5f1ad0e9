// Decides which stalls get a report. Pure: takes the time as input. A stall more than twice as long as the longest one
// reported from its location always gets one: limits suppress repetition, not news.

internal import StallModel

/// Admits reports within the limits, and remembers the decision on each stall while it is open.
struct ReportLimiter {
    var limits: RateLimits
    var debuggerPolicy: DebuggerPolicy
    private var hourEnds = MonotonicInstant(nanoseconds: 0)
    private var admittedThisHour = 0
    private var locations: [Int64: Location] = [:]
    private var open: [UniqueID: Decision] = [:]

    private struct Location {
        var seen = 0
        var longestReported = Duration.zero
        /// The number of the next stall that is reported although the limit is reached.
        var nextReported: Int
    }

    /// The decision on a stall.
    struct Decision {
        var place: Int64
        /// Nil if it is reported.
        var reason: SuppressionReason?
        var isExpected = false
        /// The suppressed time while it had no report, and why.
        var counted: (time: Duration, reason: SuppressionReason)?
    }

    /// The decision about an update of a stall.
    struct Answer {
        var place: Int64
        /// Write the report.
        var isReported: Bool
        /// Add this to the counts of suppressed stalls.
        var count: (stalls: Int, time: Duration, reason: SuppressionReason)?
    }

    init(limits: RateLimits, debuggerPolicy: DebuggerPolicy) {
        self.limits = limits
        self.debuggerPolicy = debuggerPolicy
    }

    mutating func answer(
        _ report: StallReport, place: @autoclosure () -> Int64, at now: MonotonicInstant
    ) -> Answer {
        startHour(at: now)
        var decision = open[report.id] ?? decide(report, place: place())
        let countedBefore = decision.counted
        // It was declared as meant, and lasts longer than that.
        if decision.isExpected, report.verdict == .stalled { decision.reason = nil }
        if decision.reason == .place || decision.reason == .hour,
            let known = locations[decision.place], known.longestReported > .zero,
            report.duration > known.longestReported * 2
        {
            decision.reason = nil
        }
        var answer = Answer(place: decision.place, isReported: decision.reason == nil)
        if let reason = decision.reason {
            answer.count = (
                countedBefore == nil ? 1 : 0, report.duration - (countedBefore?.time ?? .zero),
                reason
            )
            decision.counted = (report.duration, reason)
        } else {
            // Revoke what was counted as suppressed before the stall became long enough for a report.
            if let counted = countedBefore {
                answer.count = (-1, .zero - counted.time, counted.reason)
            }
            decision.counted = nil
            locations[decision.place]?.longestReported.raise(to: report.duration)
        }
        open[report.id] = report.state == .open ? decision : nil
        return answer
    }

    private mutating func startHour(at now: MonotonicInstant) {
        guard now >= hourEnds else { return }
        hourEnds = now + .seconds(3600)
        admittedThisHour = 0
        locations = [:]
    }

    private mutating func decide(_ report: StallReport, place hash: Int64) -> Decision {
        if report.verdict == .debugger, debuggerPolicy == .ignore {
            return Decision(place: hash, reason: .debugger)
        }
        var place = locations[hash] ?? Location(nextReported: limits.perPlace.doubled)
        place.seen += 1
        var reason: SuppressionReason?
        if place.seen > limits.perPlace, place.seen < place.nextReported {
            reason = .place
        } else if admittedThisHour >= limits.perHour {
            reason = .hour
        } else {
            admittedThisHour += 1
        }
        if place.seen >= place.nextReported { place.nextReported = place.nextReported.doubled }
        locations[hash] = place
        return Decision(place: hash, reason: reason, isExpected: report.verdict == .expected)
    }
}

extension StallReport {
    /// A hash of the stall's location in the app's code: the innermost calls of its heaviest stack in the app's own
    /// images; in any images if the app has none on the stack.
    var place: Int64 {
        let samples = samples.filter { !$0.isLate && !$0.locations.isEmpty }
        let stack = samples.max { $0.weight < $1.weight }?.locations ?? []
        let calls = stack.filter { $0.kind != .interrupted }
        let own = calls.filter { $0.imagePath.map(isAppImage) ?? false }
        var hash = ContentHash()
        hash.combine(loop)
        // Stalls that are meant leave the share of the others alone, nor does their length make those look like no news.
        if verdict == .expected { hash.combine(verdict.word) }
        for location in (own.isEmpty ? calls : own).prefix(3) {
            hash.combine(location.imagePath)
            hash.combine(location.offset)
        }
        return hash.value
    }
}

/// Whether the image belongs neither to the system nor to Swift.
private func isAppImage(_ path: String) -> Bool {
    let systemDirectories = ["/lib", "/usr/lib", "[vdso]"]
    if systemDirectories.contains(where: path.hasPrefix) { return false }
    let name = path.split(separator: "/").last ?? ""
    return !["libswift", "libFoundation", "lib_Foundation", "libdispatch", "libBlocksRuntime"]
        .contains(where: name.hasPrefix)
}

extension Int {
    fileprivate var doubled: Int { self > .max / 2 ? .max : self * 2 }
}

extension Duration {
    fileprivate mutating func raise(to other: Duration) { self = max(self, other) }
}
