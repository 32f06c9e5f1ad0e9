// Rows into reports whose stacks are numbers. Content that reports share is read once; names are read when they are
// asked for, and not held: they are most of a store's content.

internal import StallModel
internal import StallQuery
internal import StallStore

/// Reads reports without their stacks; shared rows are read once.
final class OutlineReader {
    static let columns = """
        report.id, report.loop, report.mode, report.activity, report.phase, report.state,
        report.verdict, report.start_us, report.duration_ns, report.cpu_ns,
        report.detection_delay_ns, report.samples, report.agent_ns, report.skipped_threads,
        report.ending, report.signature, report.cause, report.cause_confidence,
        report.cause_detail, report.evidence, report.evidence_numbers, report.cause_permille,
        report.source, report.seq, report.revision, report.delayed_ns
        """

    private var loops: [Int64: (run: ProcessRun, name: String, threshold: Duration)] = [:]
    private var labels: [Int64: String] = [:]
    private let groups: [Int64: ReportGroup]
    private let stores: [Int64: UniqueID]
    private let evidence: EvidenceReader

    init(_ connection: Connection) throws {
        evidence = try EvidenceReader(connection)
        var runs: [UniqueID: ProcessRun] = [:]
        var reader = ProcessRunReader()
        let rows = try connection.prepare(
            """
            select loop.id, loop.name, loop.threshold_ns, \(ProcessRun.columns)
            from loop join process_run on process_run.id = loop.run
            """)
        while try rows.step() {
            let found = try reader.run(rows, at: 3)
            let run = runs[found.id] ?? found
            runs[found.id] = run
            loops[try rows.integer(at: 0)] = (run, rows.text(at: 1), try rows.duration(at: 2))
        }
        let texts = try connection.prepare("select id, value from label")
        while try texts.step() { labels[try texts.integer(at: 0)] = texts.text(at: 1) }
        groups = try SignatureRows.groups(connection)
        stores = try connection.storesBySource()
    }

    func outline(_ rows: Statement) throws -> ReportOutline {
        let number = try rows.integer(at: 1)
        guard let loop = loops[number] else { throw rows.damage("a report of no loop") }
        guard let mode = labels[try rows.integer(at: 2)] else {
            throw rows.damage("a report of no mode")
        }
        let groupNumber = try rows.integer(at: 15)
        guard let group = groups[groupNumber] else {
            throw rows.damage("a report of no group")
        }
        guard let store = stores[try rows.integer(at: 22)] else {
            throw rows.damage("a report of no source")
        }
        let duration = try rows.duration_ns(at: 8)
        let report = StallReport(
            id: try rows.uniqueID(at: 0), run: loop.run, loop: loop.name, mode: mode,
            phase: try rows.value(at: 4),
            activity: rows.optionalInteger(at: 3).flatMap { labels[$0] },
            start: try rows.time(at: 7),
            duration: .nanoseconds(duration), cpuTime: try rows.duration(at: 9),
            delayedTime: try rows.delayed(at: 25, in: duration),
            threshold: loop.threshold, detectionDelay: try rows.duration(at: 10),
            state: try rows.value(at: 5),
            ending: rows.isNull(at: 14) ? nil : try rows.value(at: 14),
            verdict: try rows.value(at: 6), cause: try evidence.cause(rows, at: 16, evidence: 19),
            skippedThreadCount: Int(try rows.count(at: 13)),
            agentTime: try rows.duration(at: 12))
        let samples = try rows.samples(at: 11)
        return ReportOutline(
            report: report,
            origin: ReportOrigin(
                store: store, seq: try rows.integer(at: 23), revision: try rows.integer(at: 24)),
            group: group, loopNumber: number, groupNumber: groupNumber,
            samples: zip(samples, samples.weights(in: duration)).map(OutlinedSample.init),
            threads: try rows.threads(at: 26).map(OutlinedThread.init))
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
