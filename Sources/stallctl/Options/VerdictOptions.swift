// The verdicts and states to include, for commands that show reports of any.

internal import ArgumentParser
internal import StallModel
internal import StallQuery

struct VerdictOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Include only reports with this verdict: stalled, starved, sampled, ... Repeatable.",
            valueName: "verdict"),
        completion: .list(StallVerdict.all.map(\.word)), transform: readVerdict)
    var verdict: [StallVerdict] = []

    @Option(
        help: ArgumentHelp(
            "Include only reports in this state: open, ended or hang; or blocking or expected, as --verdict does. Repeatable.",
            valueName: "state"),
        completion: .list(StateWord.byWord.keys.sorted()), transform: readState)
    var state: [StateWord] = []

    func validate() throws {
        if let state = states.first, let verdict = verdictsOfState.first {
            throw ValidationError(
                "--state \(state.word) and --state \(verdict.word) cannot be used together: "
                    + "\(verdict.word) is a verdict.")
        }
        if let state = verdictsOfState.first, let other = verdict.first, chosen?.isEmpty == true {
            throw ValidationError(
                "--state \(state.word) and --verdict \(other.word): no report can match both.")
        }
    }

    /// The filter with these verdicts and states.
    func narrowing(_ filter: ReportFilter) -> ReportFilter {
        var filter = filter
        filter.verdicts = chosen
        filter.states = states.isEmpty ? nil : Set(states)
        return filter
    }

    var isEmpty: Bool { verdict.isEmpty && state.isEmpty }

    /// The verdicts that both options allow; nil if neither names one.
    private var chosen: Set<StallVerdict>? {
        guard !verdictsOfState.isEmpty else { return verdict.isEmpty ? nil : Set(verdict) }
        let named = Set(verdictsOfState)
        return verdict.isEmpty ? named : named.intersection(verdict)
    }

    private var states: [StallState] {
        state.compactMap { if case .state(let state) = $0 { state } else { nil } }
    }

    private var verdictsOfState: [StallVerdict] {
        state.compactMap { if case .verdict(let verdict) = $0 { verdict } else { nil } }
    }
}

/// A word of `--state`. A list's column STATE has verdicts as well; two of them are asked for like states.
enum StateWord {
    case state(StallState)
    case verdict(StallVerdict)

    static let byWord: [String: StateWord] = StallState.byWord.mapValues { .state($0) }
        .merging([StallVerdict.blocking, .expected].map { ($0.word, .verdict($0)) }) { first, _ in
            first
        }
}

private func readVerdict(_ text: String) throws -> StallVerdict {
    guard let verdict = StallVerdict.byWord[text.lowercased()] else {
        let words = listed(StallVerdict.all.map(\.word))
        throw ValidationError("'\(text)' is not a verdict; expected \(words).")
    }
    return verdict
}

private func readState(_ text: String) throws -> StateWord {
    guard let state = StateWord.byWord[text.lowercased()] else {
        let words = listed(StateWord.byWord.keys.sorted())
        throw ValidationError("'\(text)' is not a state; expected \(words).")
    }
    return state
}
