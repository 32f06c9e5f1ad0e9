// `check`: verifies a store and rebuilds what can be derived from its reports.

internal import ArgumentParser
internal import StallAnalysis
internal import StallArchive
internal import StallIngest

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Verify a store's integrity and repair its roll-ups.",
        discussion: """
            Reads the whole store: SQLite's pages and references, the hash of every
            stack, location, image and function, and whether the roll-ups match the
            reports. --repair regroups all reports and rebuilds the roll-ups; nothing
            else can be rebuilt. The exit code is 1 if a problem was found. Of a cluster
            it compares the shards and the roll-ups; --repair gives each shard the rows
            that it lacks, and adds up the roll-ups again.

            EXAMPLES
              stallctl check --store central.sqlite
              stallctl check --store central.sqlite --repair
            """)

    @OptionGroup var target: StoreOptions
    @OptionGroup var grouping: GroupingOptions

    @Flag(help: "Regroup all reports of a central store, rebuild its roll-ups, then verify again.")
    var repair = false

    @Flag(help: "Write JSON.")
    var json = false

    struct Row: Encodable {
        let schema = "stallctl.check/1"
        var store: String
        var repaired: Bool
        var faults: [String]
        /// Notes about a store without faults.
        var notes: [String]
    }

    func run() throws {
        let path = target.path
        if let remote = try StoreOpener.remote(path) {
            return try show(remote.check(repairing: repair), [], of: path)
        }
        if repair {
            _ = try ReportStore.open(path: path)
            let lock = try JobLock(store: path, waitSeconds: 60)
            try repairStore(
                path: path, grouper: DefaultGrouper(rules: grouping.rulesInForce(ofFile: path)))
            _ = consume lock
        }
        let faults = try checkStore(path: path)
        let notes = faults.isEmpty ? try storeNotes(path: path) : []
        let isRepairable = faults.allSatisfy(\.isRepairable)
        try show(faults.map(\.description), notes, of: path, isRepairable: isRepairable)
    }

    private func show(
        _ faults: [String], _ notes: [String], of path: String, isRepairable: Bool = true
    ) throws {
        if json {
            try Output.write(json: [
                Row(
                    store: path, repaired: repair, faults: faults, notes: notes)
            ])
        } else {
            let lines =
                faults.isEmpty
                ? ["no problems found\(repair ? "; roll-ups rebuilt" : "")"] + notes
                : faults
            try Output.write(sentences: lines.map { "\(path): \($0)".printable })
        }
        guard !faults.isEmpty else { return }
        if !repair, isRepairable {
            say("stallctl: run 'stallctl check --repair' to fix this")
        }
        throw ExitCode.failure
    }
}
