// `merge`: makes one group of several by adding a rule, so that future reports are merged as well.

internal import ArgumentParser
internal import Foundation
internal import StallAnalysis
internal import StallModel
import StallQuery

struct Merge: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Merge several groups into one, by a rule for all reports, old and new.",
        discussion: """
            Adds a line to the grouping rules: to --rules FILE, or else to
            stallwatch.rules beside the store. Delete the line to undo the merge.
            In a central store, 'stallctl regroup' applies it to existing reports.

            A group is given as a substring of its title, a glob for the whole title,
            or a prefix of the signature in top --json. The merged group is named
            after the first one, or as given by --into.

            EXAMPLES
              stallctl merge saveAlbum exportAlbum
              stallctl merge 36a0c3c1 f83cd7dd --into 'writing the journal'
            """)

    @OptionGroup var source: StoreOptions
    @OptionGroup var filters: FilterOptions
    @OptionGroup var grouping: GroupingOptions

    @Option(help: ArgumentHelp("The name of the merged group.", valueName: "name"))
    var into: String?

    @Argument(
        help: ArgumentHelp("The groups to merge, two or more.", valueName: "group"),
        completion: StoreCompletion.group.kind)
    var groups: [String]

    func validate() throws {
        guard groups.count >= 2 else {
            throw ValidationError("Expected two or more groups; got \(groups.count).")
        }
        if let into, into.isEmpty || into.contains(where: { $0 == "\"" || $0.isNewline }) {
            throw ValidationError("--into must not contain quotes or line breaks.")
        }
    }

    func run() throws {
        // The default rules file is beside the store.
        if grouping.rules == nil { try source.expectFile(for: "merge without --rules") }
        let store = try source.open()
        let ranking = try grouping.question(to: store, filters.filter).exactRanking(by: .total)
        let merged = try groups.map { try ranking.groups.one(named: $0, inStore: store.path) }
        guard Set(merged.map(\.group.signature)).count == merged.count else {
            throw ValidationError("\(groups.joined(separator: " and ")) are already one group.")
        }
        let rule = MergeRule(merged, into: into)
        let path = grouping.rules ?? GroupingOptions.pathBeside(store: store.path)
        let rules =
            FileManager.default.fileExists(atPath: path)
            ? try String(contentsOf: URL(filePath: path), encoding: .utf8)
            // The store's own rules would be lost once the new file is applied.
            : try store.rulesText() ?? ""
        // The file is replaced atomically.
        try Output.write(lines: rule.lines(before: rules, file: path), to: path)
        try Output.write(lines: [rule.text])
        let next =
            store.role == .central
            ? "; apply it to existing reports with: stallctl regroup --store \(store.path)" : ""
        say("stallctl: \(path): added a rule\(next)".printable)
    }
}
