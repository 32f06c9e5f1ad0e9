// `regroup`: applies the current rules to all stored reports. StallStore does it; this shows which reports moved.

internal import ArgumentParser
internal import StallAnalysis
internal import StallModel
internal import StallArchive
internal import StallIngest
import StallQuery

struct Regroup: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Regroup all reports of a central store by the current rules.",
        discussion: """
            A store keeps the rules that it is grouped by, and only this command
            changes them. Only the groups and the roll-ups that top reads change,
            not the reports. An agent's store holds no groups: its reports are
            grouped each time they are read.

            EXAMPLES
              stallctl regroup --store central.sqlite
              stallctl regroup --store central.sqlite --rules try.rules --json
              stallctl regroup --store central.sqlite --stored-rules
            """)

    @OptionGroup var source: StoreOptions
    @OptionGroup var grouping: GroupingOptions
    @Flag(help: "Keep the store's own rules, as after an upgrade with other built-in ones.")
    var storedRules = false

    @OptionGroup var output: OutputOptions

    func validate() throws {
        if storedRules, grouping.rules != nil {
            throw ValidationError("--stored-rules and --rules cannot be used together.")
        }
    }

    func run() throws {
        let path = source.path
        let moved = try StoreOpener.remote(path).map(regroup) ?? regroupFile()
        if output.json {
            try Output.write(json: moved.map(RegroupRow.init))
        } else {
            let view = RegroupView(moved: moved, path: path, terminal: output.terminal)
            try output.show(view.lines)
        }
    }

    private func regroupFile() throws -> [RegroupedReports] {
        let store = try source.open()
        guard store.role == .central else {
            throw NothingToRegroup(path: store.path)
        }
        let rules = try rules(of: store.storedRules(), store.path)
        return try regroupStore(path: store.path, grouper: DefaultGrouper(rules: rules))
    }

    private func rules(of stored: StoredRules?, _ path: String) throws -> GroupingRules {
        guard storedRules else { return try grouping.rules(forStore: path) }
        guard let stored else { return .builtIn }
        guard let text = stored.text else { throw NoStoredRules(path: path) }
        return try GroupingRules(ofStore: text)
    }

    private func regroup(_ remote: any RemoteStore) throws -> [RegroupedReports] {
        let rules = try rules(of: storedRules ? remote.rules() : nil, source.path)
        return try remote.regroup(by: DefaultGrouper(rules: rules), rules: rules.text)
    }
}

/// An older version of stallctl grouped the store, and kept no text.
private struct NoStoredRules: Error, CustomStringConvertible {
    var path: String

    var description: String {
        "\(path) does not have the text of the rules that it is grouped by; name their file with --rules"
    }
}

private struct NothingToRegroup: Error, CustomStringConvertible {
    var path: String

    var description: String {
        "\(path) is an agent's store, whose reports are grouped when they are read; expected a central store"
    }
}

/// Reports that moved, as JSON: the schema of `regroup --json`. Key names are a contract.
struct RegroupRow: Encodable {
    let schema = "stallctl.regroup/1"
    /// Null for reports that were in no group.
    @Nullable var signatureBefore: String?
    @Nullable var titleBefore: String?
    var signature: String
    var title: String
    var count: Int

    init(_ moved: RegroupedReports) {
        signatureBefore = moved.before.map { hexadecimal($0.signature) }
        titleBefore = moved.before.map { $0.title(under: nil) }
        signature = hexadecimal(moved.after.signature)
        title = moved.after.title(under: nil)
        count = moved.count
    }
}

/// `regroup` as text.
struct RegroupView {
    var moved: [RegroupedReports]
    var path: String
    var terminal: Terminal

    var lines: [String] {
        let count = moved.reduce(0) { $0 + $1.count }
        guard count > 0 else {
            return "\(path.printable): no report changed its group".wrapped(to: terminal.columns)
        }
        let rows = moved.map { move -> [Table.Cell] in
            let row = RegroupRow(move)
            return [
                .init("\(row.count)"), .init(row.titleBefore ?? "none", style: .faint),
                .init("-> " + row.title, style: .strong),
            ]
        }
        let table = Table(
            columns: [.init("REPORTS", .trailing), .init("WAS IN"), .init("IS IN")],
            flexibleColumn: 1,
            othersFirst: terminal.columns.flatMap { $0 < 60 ? 12 : nil }, rows: rows)
        let sentence = "\(path.printable): \(counted(count, "report")) moved to another group"
        return sentence.wrapped(to: terminal.columns) + [""] + table.lines(for: terminal)
    }
}
