// The verdicts to include, for commands that show reports of any.

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

    /// The filter with these verdicts.
    func narrowing(_ filter: ReportFilter) -> ReportFilter {
        var filter = filter
        filter.verdicts = verdict.isEmpty ? nil : Set(verdict)
        return filter
    }
}

private func readVerdict(_ text: String) throws -> StallVerdict {
    guard let verdict = StallVerdict.byWord[text.lowercased()] else {
        let words = listed(StallVerdict.all.map(\.word))
        throw ValidationError("'\(text)' is not a verdict; expected \(words).")
    }
    return verdict
}
