// The rules to group by; shared by every command that groups.

internal import ArgumentParser
internal import Foundation
internal import StallAnalysis
internal import StallModel
internal import StallQuery

struct GroupingOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Grouping rules, applied before the built-in ones. Default: stallwatch.rules beside the store, or in the configuration directory.",
            valueName: "path"),
        completion: .file(extensions: ["rules"]))
    var rules: String?

    /// The rules for reports of a store.
    func rules(forStore store: String) throws -> GroupingRules {
        let path = Self.path(
            option: rules, store: store, environment: ProcessInfo.processInfo.environment,
            exists: FileManager.default.fileExists(atPath:))
        guard let path else { return .builtIn }
        let text: String
        do {
            text = try String(contentsOf: URL(filePath: path), encoding: .utf8)
        } catch {
            let isThere = FileManager.default.fileExists(atPath: path)
            throw UnreadableRules(
                path: path, reason: isThere ? "not UTF-8 text" : "no such file")
        }
        return try GroupingRules(text, file: path)
    }

    /// The query for a ranking. Notes on stderr if the store's groups were computed with different rules.
    func question(
        to store: any QueryableStore, _ filter: ReportFilter, by key: GroupKey = .signature,
        rulesOf path: String? = nil
    ) throws -> RankingQuestion {
        var question = RankingQuestion(
            store: store, filter: filter, rules: try rules(forStore: path ?? store.path), by: key)
        question.noteOtherRules = {
            say(
                "stallctl: \(store.path) was grouped with different rules, so every report is read; run 'stallctl regroup' to update it"
                    .printable)
        }
        if let time = try question.shortenedDay {
            say(
                "stallctl: \(store.path): reports of \(time.rfc3339.prefix(10)) were pruned; the stalls of the part of that day (UTC) that was asked for are missing"
                    .printable)
        }
        return question
    }

    /// The first of: the option, `stallwatch.rules` beside the store, and the one in the configuration directory of the
    /// XDG Base Directory Specification; nil if none exists.
    static func path(
        option: String?, store: String, environment: [String: String], exists: (String) -> Bool
    ) -> String? {
        if let option { return option }
        return [pathBeside(store: store), configurationPath(environment)].first(where: exists)
    }

    /// The default rules file, which `merge` writes.
    static func pathBeside(store: String) -> String {
        String(store[..<(store.lastIndex(of: "/").map(store.index(after:)) ?? store.startIndex)])
            + "stallwatch.rules"
    }

    private static func configurationPath(_ environment: [String: String]) -> String {
        UserDirectories.configuration(environment) + "/stallwatch/stallwatch.rules"
    }
}

/// The rules file is missing or not text.
private struct UnreadableRules: Error, CustomStringConvertible {
    var path: String
    var reason: String

    var description: String { "\(path): cannot read the grouping rules: \(reason)" }
}
