// The one report that a command is about.

internal import ArgumentParser
internal import StallAnalysis
internal import StallModel
internal import StallStore

struct ReportArgument: ParsableArguments {
    @Argument(help: ArgumentHelp("The report's id, or a unique prefix of it.", valueName: "id"))
    var id: String

    func validate() throws {
        guard !id.isEmpty, id.allSatisfy({ $0.isHexDigit && $0.isASCII || $0 == "-" }) else {
            throw ValidationError(
                "'\(id)' is not an id; expected hexadecimal digits such as 'stallctl list' prints.")
        }
    }

    /// The report that is meant; an unknown id is answered with the one of the newest
    /// that it nearly is.
    func find(in store: any QueryableStore) throws -> StallReport { try findAll(in: store)[0] }

    /// The same, and what other sources say of the same report.
    func findAll(in store: any QueryableStore) throws -> [StallReport] {
        do {
            return try store.reports(idPrefix: id)
        } catch {
            guard case StoreError.unknownReport(let prefix) = error else { throw error }
            let ids = try store.newest(ReportFilter(), count: 10_000).reports.lazy.map(\.id)
            throw UnknownReport(
                path: store.path, prefix: prefix, suggestion: ShortIDs.nearMiss(of: prefix, in: ids)
            )
        }
    }
}

/// No report's id begins as it was typed.
private struct UnknownReport: Error, CustomStringConvertible {
    var path: String
    var prefix: String
    var suggestion: String?

    var description: String {
        "\(path): no report's id begins with \(prefix); "
            + (suggestion.map { "did you mean \($0)?" } ?? "'stallctl list' prints the ids")
    }
}

extension ShortIDs {
    /// The beginning of an id that differs from `prefix` by one slip of a finger. Of a single digit any id's
    /// beginning does: nil.
    static func nearMiss(of prefix: String, in ids: some Sequence<UniqueID>) -> String? {
        let typed = prefix.lowercased().filter { $0 != "-" }
        guard typed.count > 1 else { return nil }
        let lengths = [typed.count, typed.count + 1, typed.count - 1].filter { $0 > 0 }
        return ids.lazy.flatMap { id in lengths.map { String(id.description.prefix($0)) } }
            .first { Suggestion.editDistance(typed, $0) == 1 }
    }
}
