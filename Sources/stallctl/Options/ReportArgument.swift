// The report that a command shows.

internal import ArgumentParser
internal import StallAnalysis
internal import StallModel
internal import StallQuery
internal import StallStore

struct ReportArgument: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "A report's id or a unique prefix of it, 'latest', a rank in top, or a group's title.",
            valueName: "id"),
        completion: StoreCompletion.report.kind)
    var id: String

    func validate() throws {
        guard !id.isEmpty else {
            throw ValidationError("the id is empty; 'stallctl list' prints the ids.")
        }
    }

    /// Finds the report; an unknown id is answered with the most similar of the newest ids.
    func find(in store: any QueryableStore, _ grouping: GroupingOptions) throws -> StallReport {
        try findAll(in: store, grouping)[0]
    }

    /// All versions of the report, if several sources disagree.
    func findAll(
        in store: any QueryableStore, _ grouping: GroupingOptions
    ) throws -> [StallReport] {
        try store.consistently { try found(in: store, grouping) }
    }

    private func found(
        in store: any QueryableStore, _ grouping: GroupingOptions
    ) throws -> [StallReport] {
        if id == "latest" {
            guard let newest = try store.newest(ReportFilter(), count: 1).reports.first else {
                throw NoReports(path: store.path)
            }
            return try store.reports(idPrefix: newest.id.description)
        }
        guard isHexadecimal else { return try ofGroup(in: store, grouping) }
        do {
            return try store.reports(idPrefix: id)
        } catch {
            guard case StoreError.unknownReport(let prefix) = error else { throw error }
            // An id begins with the time, whose first digit is 0, so this is a rank.
            if !id.hasPrefix("0"), let rank = Int(id), rank <= 10_000 {
                return try ofRank(rank, in: store, grouping)
            }
            let ids = try store.newest(ReportFilter(), count: 10_000).reports.lazy.map(\.id)
            throw UnknownReport(
                path: store.path, prefix: prefix, suggestion: ShortIDs.nearMiss(of: prefix, in: ids)
            )
        }
    }

    private var isHexadecimal: Bool {
        id.allSatisfy { $0.isHexDigit && $0.isASCII || $0 == "-" }
    }

    /// The example report of a group in `top`: the longest that was not pruned.
    private func ofGroup(
        in store: any QueryableStore, _ grouping: GroupingOptions
    ) throws -> [StallReport] {
        let ranking = try grouping.question(to: store, ReportFilter())
            .ranking(by: .total, limit: 10_000)
        return try example(of: ranking.groups.one(named: id, inStore: store.path), in: store)
    }

    private func ofRank(
        _ rank: Int, in store: any QueryableStore, _ grouping: GroupingOptions
    ) throws -> [StallReport] {
        let ranking = try grouping.question(to: store, ReportFilter())
            .ranking(by: .total, limit: rank)
        guard rank <= ranking.groups.count else {
            throw UnknownRank(path: store.path, rank: rank, count: ranking.groups.count)
        }
        return try example(of: ranking.groups[rank - 1], in: store)
    }

    private func example(
        of group: StallAggregate, in store: any QueryableStore
    ) throws -> [StallReport] {
        guard let example = group.example else {
            throw PrunedGroup(path: store.path, title: group.title)
        }
        return try store.reports(idPrefix: example.description)
    }
}

private struct NoReports: QuestionError {
    let kind = ErrorKind.nothing
    var path: String
    var description: String { "\(path): the store has no reports" }
}

private struct UnknownRank: QuestionError {
    let kind = ErrorKind.nothing
    var path: String
    var rank, count: Int
    var description: String {
        "\(path): no report id begins with \(rank), and top has only \(counted(count, "group"))"
    }
}

/// All reports of the group were pruned.
private struct PrunedGroup: QuestionError {
    let kind = ErrorKind.nothing
    var path: String
    var title: String
    var description: String {
        "\(path): the reports of '\(title)' have been pruned; only roll-ups remain"
    }
}

/// No report id has the given prefix.
private struct UnknownReport: QuestionError {
    let kind = ErrorKind.nothing
    var path: String
    var prefix: String
    var suggestion: String?

    var description: String {
        "\(path): no report id begins with \(prefix); "
            + (suggestion.map { "did you mean \($0)?" } ?? "'stallctl list' prints the ids")
    }
}

extension ShortIDs {
    /// The id prefix that differs from `prefix` by one typing error. Nil for a single digit, which is one error away
    /// from every id.
    static func nearMiss(of prefix: String, in ids: some Sequence<UniqueID>) -> String? {
        let typed = prefix.lowercased().filter { $0 != "-" }
        guard typed.count > 1 else { return nil }
        let lengths = [typed.count, typed.count + 1, typed.count - 1].filter { $0 > 0 }
        return ids.lazy.flatMap { id in lengths.map { String(id.description.prefix($0)) } }
            .first { Suggestion.editDistance(typed, $0) == 1 }
    }
}
