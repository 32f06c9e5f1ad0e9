// Which stalls get a report. Pure: it is told the time. A stall that is longer than twice the longest one reported from
// its place gets one in any case: limits hide repetition, not news.

internal import StallModel

/// Admits reports within the limits, and remembers its word on each for as long as the stall is open.
struct ReportLimiter {
    var limits: RateLimits
    var debuggerPolicy: DebuggerPolicy
    private var hourEnds = MonotonicInstant(nanoseconds: 0)
    private var admittedThisHour = 0
    private var places: [Int64: Place] = [:]
    private var open: [UniqueID: Decision] = [:]

    private struct Place {
        var seen = 0
        var longestReported = Duration.zero
        /// The next one to be reported beyond the limit.
        var nextReported: Int
    }

    /// What was decided on a stall.
    struct Decision {
        var place: Int64
        /// Nil: it is reported.
        var reason: SuppressionReason?
        /// What was counted of it while it had no report, and why.
        var counted: (time: Duration, reason: SuppressionReason)?
    }

    /// What to do with the news of a stall.
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
        if decision.reason == .place || decision.reason == .hour,
            let known = places[decision.place], known.longestReported > .zero,
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
            // What was counted before it proved to be news is taken back.
            if let counted = countedBefore {
                answer.count = (-1, .zero - counted.time, counted.reason)
            }
            decision.counted = nil
            places[decision.place]?.longestReported.raise(to: report.duration)
        }
        open[report.id] = report.state == .open ? decision : nil
        return answer
    }

    private mutating func startHour(at now: MonotonicInstant) {
        guard now >= hourEnds else { return }
        hourEnds = now + .seconds(3600)
        admittedThisHour = 0
        places = [:]
    }

    private mutating func decide(_ report: StallReport, place hash: Int64) -> Decision {
        if report.verdict == .debugger, debuggerPolicy == .ignore {
            return Decision(place: hash, reason: .debugger)
        }
        var place = places[hash] ?? Place(nextReported: limits.perPlace.doubled)
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
        places[hash] = place
        return Decision(place: hash, reason: reason)
    }
}

extension StallReport {
    /// A hash of where in the app's code it happened: the calls that its heaviest stack makes in the app's own images,
    /// innermost first; of any images where the app has none.
    var place: Int64 {
        let samples = samples.filter { !$0.isLate && !$0.locations.isEmpty }
        let stack = samples.max { $0.weight < $1.weight }?.locations ?? []
        let calls = stack.filter { $0.kind != .interrupted }
        let own = calls.filter { $0.imagePath.map(isAppImage) ?? false }
        var hash = ContentHash()
        hash.combine(loop)
        for location in (own.isEmpty ? calls : own).prefix(3) {
            hash.combine(location.imagePath)
            hash.combine(location.offset)
        }
        return hash.value
    }
}

/// Not a library of the system or of Swift.
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
