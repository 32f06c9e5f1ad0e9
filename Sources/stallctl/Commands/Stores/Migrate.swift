// `migrate`: upgrades a store to the newest schema when no agent or ingest will.

internal import ArgumentParser
internal import StallIngest

struct Migrate: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Upgrade a store to the current schema.",
        discussion: """
            Agents and ingest do this automatically; reading a store never changes it.

            EXAMPLES
              stallctl migrate --store archive/2025.sqlite
              stallctl migrate --store 'clickhouse://stall@hub:8123/stalls?cluster=stalls'
            """)

    @OptionGroup var target: StoreOptions

    @Flag(help: "Write JSON.")
    var json = false

    struct Row: Encodable {
        let schema = "stallctl.migrate/1"
        var store: String
        var from: Int
        var to: Int
    }

    func run() throws {
        let path = target.path
        let (from, to) = try StoreOpener.remote(path)?.migrate() ?? migrateStore(path: path)
        guard !json else {
            return try Output.write(json: [Row(store: path, from: from, to: to)])
        }
        let text =
            from == to ? "is up to date: schema \(to)" : "migrated from schema \(from) to \(to)"
        try Output.write(sentences: ["\(path.printable): \(text)"])
    }
}
