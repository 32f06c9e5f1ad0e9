// The rules to group by; shared by every command that groups.

internal import ArgumentParser
internal import Foundation
internal import StallAnalysis
internal import StallArchive
internal import StallIngest
internal import StallModel
internal import StallQuery
internal import Synchronization

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
        return try path.map(Self.read) ?? .builtIn
    }

    /// The rules to write a central store by: those that it is grouped by. Others are named on stderr.
    func rulesInForce(ofFile path: String) throws -> GroupingRules {
        // A store that is not there yet cannot be read.
        try rulesInForce(of: try? storedRules(ofFile: path), path)
    }

    /// Likewise, of a store at an address.
    func rulesInForce(of remote: any RemoteStore, _ address: String) throws -> GroupingRules {
        let force = RulesInForce(of: try remote.rules(), among: try found(for: address))
        // A cluster refuses reports of other built-in rules, with an error of its own.
        if force.match == .same, let note = force.note(store: remote.name, word: \.shellQuoted) {
            Self.note(note)
        }
        return force.rules
    }

    private func rulesInForce(of stored: StoredRules?, _ store: String) throws -> GroupingRules {
        let force = RulesInForce(of: stored, among: try found(for: store))
        if let note = force.note(store: store, word: \.shellQuoted) { Self.note(note) }
        return force.rules
    }

    /// The rules to read a store by: of the option, of the file beside the store, or the store's own.
    ///
    /// - Parameter path: The store that the file is beside.
    func rules(toRead store: any QueryableStore, rulesOf path: String? = nil) throws
        -> GroupingRules
    {
        let path = path ?? store.path
        let isAsked =
            rules != nil || FileManager.default.fileExists(atPath: Self.pathBeside(store: path))
        guard !isAsked, let stored = try store.storedRules() else {
            return try rules(forStore: path)
        }
        return try rulesInForce(of: stored, path)
    }

    /// The rules to read a store's totals by, without a word about others.
    func rulesInForce(ofRead store: any QueryableStore) throws -> GroupingRules {
        RulesInForce(of: try store.storedRules(), among: try found(for: store.path)).rules
    }

    /// All files of rules that there are for a store, in order of precedence. Only the first has to be valid.
    private func found(for store: String) throws -> [GroupingRules] {
        let environment = ProcessInfo.processInfo.environment
        let others = [Self.pathBeside(store: store), Self.configurationPath(environment)]
            .filter(FileManager.default.fileExists)
        return [try rules(forStore: store)] + others.compactMap { try? Self.read($0) }
    }

    /// Once each: `ingest --watch` runs again and again.
    private static func note(_ line: String) {
        guard said.withLock({ $0.insert(line).inserted }) else { return }
        say("stallctl: \(line)".printable)
    }

    private static let said = Mutex<Set<String>>([])

    private static func read(_ path: String) throws -> GroupingRules {
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
        let rules = try rules(toRead: store, rulesOf: path)
        var question = RankingQuestion(store: store, filter: filter, rules: rules, by: key)
        question.noteOtherRules = {
            let command = RulesInForce.command(
                by: rules, store: store.path, of: try? store.storedRules(), word: \.shellQuoted)
            say(
                "stallctl: \(store.path) was grouped with different rules, so every report is read; '\(command)' updates it"
                    .printable)
        }
        if let time = try question.shortenedDay {
            say(
                "stallctl: \(store.path): reports of \(time.rfc3339.prefix(10)) were pruned; the stalls of the part of that day (UTC) that was asked for are missing"
                    .printable)
        }
        if key.needsReports, try question.lacksReports, let time = try store.prunedBefore() {
            say(
                "stallctl: \(store.path): reports from before \(time.rfc3339.prefix(10)) were pruned; stalls by \(key.rawValue) are those of the reports that are left"
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
