// Rows into reports whose stacks are numbers. Content that reports share is read once; names are read when they are
// asked for, and not held: they are most of a store's content.

internal import StallModel
internal import StallQuery
internal import StallStore

/// Reads reports without their stacks; shared rows are read once.
final class OutlineReader {
    /// The columns that `outline` reads.
    static func columns(threads: Bool) -> String {
        ReportRow.selected(threads: threads) + ", report.source"
    }

    // A fleet has tens of thousands of runs: a dictionary of them would be the most of an export's memory.
    private var runs: [ProcessRun] = []
    private var loops: [(run: Int32, name: String, threshold: Duration)] = []
    /// Of `loops`.
    private var loopNumbers = KeyNumbers()
    private var labels: [Int64: String] = [:]
    private let groups: [Int64: ReportGroup]
    private let stores: [Int64: UniqueID]
    private let evidence: EvidenceReader

    init(_ connection: Connection) throws {
        evidence = try EvidenceReader(connection)
        var reader = ProcessRunReader()
        let rows = try connection.prepare(
            """
            select loop.id, loop.name, loop.threshold_ns, \(ProcessRun.columns)
            from loop join process_run on process_run.id = loop.run order by loop.run
            """)
        while try rows.step() {
            guard try loopNumbers.add(rows.integer()) == loops.count else {
                throw rows.damage("two loops of one number")
            }
            let (name, threshold) = (rows.text(), try rows.duration())
            let run = try reader.run(rows)
            if runs.last?.id != run.id { runs.append(run) }
            loops.append((Int32(runs.count - 1), name, threshold))
        }
        let texts = try connection.prepare("select id, value from label")
        while try texts.step() { labels[try texts.integer()] = texts.text() }
        groups = try SignatureRows.groups(connection)
        stores = try connection.storesBySource()
    }

    func outline(_ rows: Statement) throws -> ReportOutline {
        let row = try ReportRow(rows)
        guard let loopNumber = loopNumbers.number(of: row.loop) else {
            throw rows.damage("a report of no loop")
        }
        let loop = loops[Int(loopNumber)]
        guard let mode = labels[row.mode] else { throw rows.damage("a report of no mode") }
        guard let groupNumber = row.signature, let group = groups[groupNumber] else {
            throw rows.damage("a report of no group")
        }
        guard let store = stores[try rows.integer()] else {
            throw rows.damage("a report of no source")
        }
        let report = row.report(
            run: runs[Int(loop.run)], loop: loop.name, threshold: loop.threshold, mode: mode,
            activity: row.activity.flatMap { labels[$0] },
            cause: try evidence.cause(ofReport: rows))
        return ReportOutline(
            report: report,
            origin: ReportOrigin(store: store, seq: row.seq, revision: row.revision),
            group: group, loopNumber: row.loop, groupNumber: groupNumber,
            samples: zip(row.samples, row.samples.weights(in: row.duration_ns))
                .map(OutlinedSample.init),
            threads: row.threads.map(OutlinedThread.init))
    }
}

extension OutlinedSample {
    fileprivate init(_ stored: StoredSample, weight_ns: Int64) {
        self.init(Sample(stored, weight_ns: weight_ns), stack: stored.stack)
    }
}

extension OutlinedThread {
    fileprivate init(_ stored: StoredThread) {
        self.init(ThreadSnapshot(stored), stack: stored.stack)
    }
}

/// Numbers the locations of stacks as they come.
final class PlaceLookup: OutlineLookup {
    private let rows: StackRows
    private let findImages: Statement
    private var numbers = KeyNumbers()

    init(_ connection: Connection) throws {
        rows = try StackRows(connection)
        findImages = try connection.prepare(imagesOfRun)
    }

    func places(ofStack stack: Int64, _ places: inout [Int32]) throws -> Bool {
        places.removeAll(keepingCapacity: true)
        guard let (found, isTruncated) = try rows.entries(ofStack: stack) else {
            throw rows.damage("a report refers to stack \(stack), which is missing")
        }
        for entry in found { places.append(numbers.add(entry.key)) }
        return isTruncated
    }

    func frames(ofPlace place: Int32) throws -> [Frame] {
        let entry = StackEntry(key: numbers.keys[Int(place)])
        var frames = try rows.place(entry.location).frames
        guard entry.isGuessed else { return frames }
        for index in frames.indices { frames[index].isGuessed = true }
        return frames
    }

    func images(ofRun run: UniqueID) throws -> [Image] {
        try findImages.bind(run.bytes)
        return try readImages(findImages)
    }
}
