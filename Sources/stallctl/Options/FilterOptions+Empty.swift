// An empty result is often caused by a mistyped filter.

internal import StallModel
internal import StallQuery

extension FilterOptions {
    /// Reports on stderr which names of the filter the store does not have, with the closest name or those it has.
    func explainEmptyAnswer(from store: any QueryableStore) throws {
        guard !isEmpty else { return }
        let loops = try store.loops()
        let runs = loops.map(\.run)
        let given: [(option: String, values: [String], known: [String])] = [
            ("app", apps, runs.map(\.app)), ("version", version, runs.map(\.version)),
            ("host", host, runs.map(\.host)), ("loop", loop, loops.map(\.name)),
        ]
        for (option, values, known) in given {
            let known = Set(known).sorted()
            for value in values where !known.contains(value) {
                let hint = Suggestion.hint(for: value, among: known)
                let origin = option == "app" && app.isEmpty ? " of the settings file" : ""
                say(
                    "stallctl: \(store.path): no report has \(option) '\(value)'\(origin); \(hint)"
                        .printable)
            }
        }
    }
}
