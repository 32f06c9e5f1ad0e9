// An empty answer to a filter is often a typing mistake.

internal import StallModel
internal import StallStore

extension FilterOptions {
    /// Says on stderr what the store does hold when nothing matched: the closest name, or those
    /// there are.
    func explainEmptyAnswer(from store: ReportStore) throws {
        guard !isEmpty else { return }
        let all = try store.summaries(ReportFilter())
        let runs = all.runs
        let given: [(option: String, values: [String], known: [String])] = [
            ("app", app, runs.map(\.app)), ("version", version, runs.map(\.version)),
            ("host", host, runs.map(\.host)), ("loop", loop, all.reports.map(\.loop)),
        ]
        for (option, values, known) in given {
            let known = Set(known).sorted()
            for value in values where !known.contains(value) {
                let hint = Suggestion.hint(for: value, among: known)
                say(
                    "stallctl: \(store.path): no report has \(option) '\(value)'; \(hint)".printable
                )
            }
        }
    }
}
