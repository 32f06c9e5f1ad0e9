// The shell's completions for names and ids: those that the store has. The shell runs stallctl for this at every TAB,
// so an answer that would need every report of a large store is left out, and errors are silent.

internal import ArgumentParser
internal import Foundation
internal import StallAnalysis
internal import StallModel
internal import StallQuery

/// The kind of name that an argument is.
enum StoreCompletion: Sendable {
    case app, version, host, loop
    /// A group, by its function.
    case group
    /// A report: an id, `latest`, or a group.
    case report

    var kind: CompletionKind {
        .custom { words, _, _ in (try? candidates(in: CompletedLine(words))) ?? [] }
    }

    private static let reportCount = 100
    private static let groupCount = 50
    /// Above this number of stalls, groups are offered only if the store has their roll-ups.
    private static let exactLimit = 5000

    func candidates(in line: CompletedLine) throws -> [String] {
        let store = try StoreOptions.open(path: line.storePath)
        return try names(in: store, line).filter { name in
            !name.isEmpty && !name.unicodeScalars.contains(where: \.steersTerminal)
        }
    }

    private func names(in store: any QueryableStore, _ line: CompletedLine) throws -> [String] {
        switch self {
        case .app: return Set(try store.loops().map(\.run.app)).sorted()
        case .version:
            let apps = line.values(of: "--app")
            let runs = try store.loops().map(\.run)
            return Set(runs.filter { apps.isEmpty || apps.contains($0.app) }.map(\.version))
                .sorted()
        case .host: return Set(try store.loops().map(\.run.host)).sorted()
        case .loop: return Set(try store.loops().map(\.name)).sorted()
        case .group: return try groups(in: store, line)
        case .report:
            let ids = try store.newest(ReportFilter(), count: Self.reportCount).reports.map(\.id)
            let short = ShortIDs(shown: ids, among: ids)
            let groups = try self.groups(in: store, line)
            return ids.map { short[$0] } + (ids.isEmpty ? [] : ["latest"]) + groups
        }
    }

    /// The functions that name the largest groups, each once; the signature of a group whose function a shell would quote.
    private func groups(in store: any QueryableStore, _ line: CompletedLine) throws -> [String] {
        var grouping = GroupingOptions()
        grouping.rules = line.values(of: "--rules").last
        let question = RankingQuestion(
            store: store, rules: try grouping.rulesInForce(ofRead: store))
        var ranking = try question.fromRollUps(
            by: .total, limit: Self.groupCount, withDays: false)
        if ranking?.groups.isEmpty ?? true {
            let count = try store.newest(ReportFilter(), count: Self.exactLimit).reports.count
            guard count < Self.exactLimit else { return [] }
            ranking = try question.exactRanking(by: .total)
        }
        var seen: Set<String> = []
        return (ranking?.groups.prefix(Self.groupCount) ?? []).map { group in
            let name = String((group.frames.first ?? "").prefix { $0 != "(" })
            let isPlain = name.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte)
                    || (0x61...0x7a).contains(byte) || "_.-".utf8.contains(byte)
            }
            return isPlain && !name.isEmpty
                ? name : String(hexadecimal(group.group.signature).prefix(8))
        }.filter { seen.insert($0).inserted }
    }
}

/// The words of a command line that is being typed, as the shell passes them: with their quotes.
struct CompletedLine {
    private let words: [String]

    init(_ words: [String]) { self.words = words.map(\.withoutShellQuotes) }

    /// The values of a repeatable option, given as `--app photos` or `--app=photos`.
    func values(of option: String) -> [String] {
        words.indices.compactMap { index in
            if words[index].hasPrefix(option + "=") {
                return String(words[index].dropFirst(option.count + 1))
            }
            return words[index] == option && index + 1 < words.count ? words[index + 1] : nil
        }.filter { !$0.isEmpty }
    }

    var storePath: String {
        var options = StoreOptions()
        options.store = values(of: "--store").last
        return options.path
    }
}

extension String {
    /// The word without quotes and escapes; enough for paths and names.
    fileprivate var withoutShellQuotes: String {
        var result = ""
        var quote: Character?
        var isEscaped = false
        for character in self {
            if isEscaped {
                result.append(character)
                isEscaped = false
            } else if character == "\\", quote != "'" {
                isEscaped = true
            } else if character == quote {
                quote = nil
            } else if quote == nil, character == "'" || character == "\"" {
                quote = character
            } else {
                result.append(character)
            }
        }
        return result.hasPrefix("~/")
            ? NSHomeDirectory() + result.dropFirst() : result
    }
}
