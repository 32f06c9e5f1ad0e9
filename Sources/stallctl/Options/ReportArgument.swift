// The one report that a command is about.

internal import ArgumentParser
internal import StallModel
internal import StallStore

struct ReportArgument: ParsableArguments {
    @Argument(help: ArgumentHelp("The report's id, or enough of its beginning.", valueName: "id"))
    var id: String

    func validate() throws {
        guard !id.isEmpty, id.allSatisfy({ $0.isHexDigit && $0.isASCII || $0 == "-" }) else {
            throw ValidationError(
                "'\(id)' is not an id; expected hexadecimal digits such as 'stallctl list' prints.")
        }
    }

    /// The report that is meant; an unknown id is answered with the one of the newest
    /// that it nearly is.
    func find(in store: ReportStore) throws -> StallReport { try findAll(in: store)[0] }

    /// The same, and what other sources say of the same report.
    func findAll(in store: ReportStore) throws -> [StallReport] {
        do {
            return try store.reports(idPrefix: id)
        } catch {
            guard case .unknownReport(let prefix) = error else { throw error }
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
