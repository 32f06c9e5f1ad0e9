// `prune`: deletes old reports and roll-ups of a central store.

internal import ArgumentParser
internal import StallAnalysis
internal import StallModel
internal import StallArchive
internal import StallIngest

struct Prune: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Delete the oldest reports of a central store.",
        discussion: """
            The roll-ups of deleted reports are kept, so that top, diff and trend still
            count them, until --rollups-older-than deletes those too. Deleted reports
            are not imported again. Of a cluster, --max-size deletes whole days, and
            counts the tables of all shards.

            EXAMPLES
              stallctl prune --store central.sqlite --older-than 90d
              stallctl prune --store central.sqlite --max-size 2GB
              stallctl prune --older-than 30d --rollups-older-than 52w
            """)

    @OptionGroup var target: StoreOptions
    @OptionGroup var grouping: GroupingOptions

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Delete reports of stalls that began before this time: 90d, 4w, 2026-01-01.",
            valueName: "time"),
        transform: readTime)
    var olderThan: UnixTime?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Delete the oldest reports until the file is at most this large: 500MB, 2GB.",
            valueName: "size"),
        transform: ByteSize.read)
    var maxSize: Int64?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Delete the roll-ups of days before this time, and the reports of those days.",
            valueName: "time"),
        transform: readTime)
    var rollupsOlderThan: UnixTime?

    @Flag(help: "Write JSON.")
    var json = false

    struct Row: Encodable {
        let schema = "stallctl.prune/1"
        var store: String
        var deleted: Int
        var bytesBefore: Int64
        var bytesAfter: Int64
    }

    func validate() throws {
        if olderThan == nil, maxSize == nil, rollupsOlderThan == nil {
            throw ValidationError(
                "Specify what to delete: --older-than, --max-size or --rollups-older-than.")
        }
    }

    func run() throws {
        let path = target.path
        let retention = Retention(
            reportsSince: olderThan, bytes: maxSize, rollUpsSince: rollupsOlderThan)
        if let remote = try StoreOpener.remote(path) {
            return try show(remote.prune(keeping: retention), of: path, isRemote: true)
        }
        _ = try ReportStore.open(path: path)
        let lock = try JobLock(store: path, waitSeconds: 60)
        let summary = try pruneStore(
            path: path, keeping: retention,
            grouper: DefaultGrouper(rules: grouping.rulesInForce(ofFile: path)))
        _ = consume lock
        try show(summary, of: path)
    }

    private func show(_ summary: PruneSummary, of path: String, isRemote: Bool = false) throws {
        let row = Row(
            store: path, deleted: summary.deletedCount, bytesBefore: summary.bytesBefore,
            bytesAfter: summary.bytesAfter)
        if json { return try Output.write(json: [row]) }
        var sentence = "\(path.printable): deleted \(counted(summary.deletedCount, "report"))"
        let (before, after) = (
            summary.bytesBefore.formattedBytes, summary.bytesAfter.formattedBytes
        )
        // A server frees the disk later.
        if !isRemote {
            sentence += ", " + (before == after ? "\(after)" : "\(before) before, \(after) now")
        }
        try Output.write(sentences: [sentence])
    }
}

/// A size in bytes, as typed on the command line.
enum ByteSize {
    /// Reads `500MB`, `1.5 GB`, `2GiB` or a plain number of bytes.
    static func read(_ text: String) throws -> Int64 {
        let pattern = /(\d{1,12}(?:\.\d{1,6})?) ?(k|m|g|t)?(i)?b?/.ignoresCase()
        guard let match = text.wholeMatch(of: pattern), let number = Double(match.1) else {
            throw ValidationError(
                "'\(text)' is not a size; expected one such as 500MB, 2GB or 1048576.")
        }
        let step: Double = match.3 == nil ? 1000 : 1024
        let power = match.2.map { "kmgt".distance(of: $0.lowercased()) + 1 } ?? 0
        var bytes = number
        for _ in 0..<power { bytes *= step }
        guard bytes < 9e18 else {
            throw ValidationError("'\(text)' is larger than any file can be.")
        }
        return Int64(bytes)
    }
}

extension String {
    fileprivate func distance(of letter: String) -> Int {
        firstIndex(of: Character(letter)).map { distance(from: startIndex, to: $0) } ?? 0
    }
}
