// One side of a comparison as typed (a version, a time range or a store) and the query for it.

internal import ArgumentParser
internal import Foundation
internal import StallAnalysis
internal import StallModel
internal import StallQuery

struct ComparedQuestion {
    var name: String
    var set: ComparedSet
    var question: RankingQuestion

    /// The questions of both sides. A store that both read is opened once: two would read a snapshot each, and an ingest between
    /// them would be on one side only.
    static func both(
        _ texts: [String], stores: [String], filters: FilterOptions, grouping: GroupingOptions,
        by key: GroupKey = .signature
    ) throws -> [ComparedQuestion] {
        var opened: [[String]: any QueryableStore] = [:]
        return try texts.map { text in
            try ComparedQuestion(
                text, stores: stores, filters: filters, grouping: grouping, by: key
            ) { paths in
                if let known = opened[paths] { return known }
                let store = try SeveralStoresOptions.open(paths: paths)
                opened[paths] = store
                return store
            }
        }
    }

    private init(
        _ text: String, stores: [String], filters: FilterOptions, grouping: GroupingOptions,
        by key: GroupKey, open: ([String]) throws -> any QueryableStore
    ) throws {
        var filter = filters.filter
        var paths = stores
        do {
            set = try ComparedSet(
                text, now: .now, timeZone: .current,
                exists: FileManager.default.fileExists(atPath:))
        } catch {
            throw ValidationError("\(error)")
        }
        switch set {
        case .version(let version): filter.versions = [version]
        case .range(let since, let until):
            filter.since = [filter.since, since].compactMap(\.self).max()
            filter.until = [filter.until, until].compactMap(\.self).min()
        case .store(let other): paths = [other]
        }
        name = text
        question = try grouping.question(
            to: open(paths), filter, by: key, rulesOf: stores[0])
    }

    /// The error if this side has no reports.
    func nothing(isWatched: Bool) throws -> NothingToCompare {
        try NothingToCompare(question, set, name, isWatched: isWatched)
    }
}

/// One side of the comparison has no reports.
struct NothingToCompare: QuestionError {
    let kind = ErrorKind.question
    var path: String
    var name: String
    /// Whether its loops were watched nevertheless.
    var isWatched: Bool
    var reason = ""

    init(
        _ question: RankingQuestion, _ set: ComparedSet, _ name: String, isWatched: Bool
    ) throws {
        path = question.store.path
        self.name = name
        self.isWatched = isWatched
        guard case .version(let version) = set else { return }
        let apps = question.filter.apps
        let runs = try question.store.loops().map(\.run)
        let known = Set(
            runs.filter { apps.isEmpty || apps.contains($0.app) }.map(\.version)
        ).sorted()
        guard !known.contains(version) else { return }
        reason = "; unknown version '\(version)'"
        if !apps.isEmpty { reason += " of \(listed(apps))" }
        reason +=
            Suggestion.closest(to: version, in: known).map { ": did you mean '\($0)'?" } ?? "."
        let names = known.prefix(10).joined(separator: ", ") + (known.count > 10 ? ", ..." : "")
        reason += known.isEmpty ? " The store has none." : " Known: \(names)"
    }

    var description: String {
        "\(path): no reports" + (isWatched ? "" : " and no watched time") + " for '\(name)'"
            + reason
    }
}
