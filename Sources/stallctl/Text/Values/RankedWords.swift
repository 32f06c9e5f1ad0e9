// The words for the reports that a ranking, a tree or a trend adds up, by their verdicts.

internal import StallModel

struct RankedWords {
    let ranked: Set<StallVerdict>

    init(_ ranked: Set<StallVerdict> = [.stalled]) { self.ranked = ranked }

    /// Whether stalls are ranked, and no reports of another verdict.
    var isOfStalls: Bool { ranked == [.stalled] }
    /// Whether violations are ranked alone. They are counted: the time that they took was not lost in stalls.
    var isOfViolations: Bool { ranked == [.blocking] }

    /// `stall`, `violation`, `expected stall`, `sampled report`.
    var noun: String {
        guard ranked.count == 1, let verdict = ranked.first else { return "report" }
        return switch verdict {
        case .stalled: "stall"
        case .blocking: "violation"
        case .expected: "expected stall"
        default: verdict.word + " report"
        }
    }

    /// `, 4m 12s lost`; of other verdicts `, 4m 12s in all`, if it is known; of violations nothing.
    func time(_ own: Duration, isUnknown: Bool = false) -> String {
        if isOfViolations { return "" }
        guard isOfStalls else { return isUnknown ? "" : ", \(own.compact) in all" }
        return isUnknown ? ", unknown time lost" : ", \(own.compact) lost"
    }

    /// The time that some of them took, for columns.
    func sum(_ duration: Duration) -> String {
        ranked.contains(.blocking) ? duration.compactCall : duration.compact
    }

    /// How long one or some of them lasted, for columns.
    func length(_ duration: Duration) -> String {
        if isOfViolations { return duration.compactCall }
        return ranked.contains(.blocking) && !duration.isUnknownLength
            ? duration.compactCall : duration.compactLength
    }
}

extension StallVerdict {
    /// How long a report of this verdict lasted, for columns.
    func length(_ duration: Duration) -> String {
        self == .blocking ? duration.preciseCall : duration.preciseLength
    }

    /// `3 violations`, `2 sampled`.
    func counted(_ count: Int) -> String {
        self == .blocking ? stallctl.counted(count, "violation") : "\(count) \(word)"
    }
}
