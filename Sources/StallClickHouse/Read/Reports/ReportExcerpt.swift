// Reports with all that they refer to, in a store in memory. Rows that many share are fetched once. Stacks are fetched
// when they are read: a list shows twenty of a thousand reports, and a store has far more frames than reports.

internal import StallArchive
internal import StallModel
internal import StallStore

/// A store in memory of reports that were fetched so far.
final class ReportExcerpt {
    let server: ClickHouseServer
    let excerpt: Excerpt
    /// By their hashes.
    var stacks = RowNumbers<Int64>()
    var images = RowNumbers<Int64>()
    var locations = RowNumbers<Int64>()
    var functions = RowNumbers<Int64>()
    private var evidence = RowNumbers<Int64>()
    /// The stacks of which all is here.
    var wholeStacks: Set<Int64> = []
    private var wholeEvidence: Set<Int64> = []
    /// The processes, names and thresholds of loops that are here, by hash.
    private(set) var loops: [Int64: (run: ProcessRun, name: String, threshold_ns: Int64)] = [:]
    /// The loops of the processes whose images are here.
    var loopsWithImages: Set<Int64> = []
    private let addReport, addDay, addWatched: Statement

    init(_ server: ClickHouseServer, _ grouping: GroupingRow?) throws {
        self.server = server
        excerpt = try Excerpt(of: server.name, grouping)
        addReport = try excerpt.connection.prepare(ReportRow.insertion(or: "replace"))
        addDay = try excerpt.connection.prepare(
            """
            insert into report_day (day, source, first_seq, last_seq) values (?, ?, ?, ?)
            on conflict do update set first_seq = min(first_seq, excluded.first_seq),
                last_seq = max(last_seq, excluded.last_seq)
            """)
        addWatched = try excerpt.connection.prepare(
            "insert or ignore into watched_loop (source, loop) values (?, ?)")
    }

    /// Fetches reports.
    ///
    /// - Parameters:
    ///   - rest: The clauses behind the conditions: an order and a limit.
    ///   - withStacks: Also all that is on their stacks, what their causes rest on, and their processes' images.
    /// - Returns: How many there are.
    @discardableResult
    func fetch(
        _ conditions: ReportConditions, _ rest: ClickHouseQuery = "", withStacks: Bool
    ) throws -> Int {
        var rows = try server.rows(
            "select \(ClusterReport.columns) from \(conditions.reports(server)) \(rest)",
            columnCount: ClusterReport.columnCount)
        var count = 0
        var isAtEnd = false
        // In parts, so that not all of them are here twice.
        while !isAtEnd {
            var reports: [ClusterReport] = []
            while reports.count < 20_000 {
                guard try rows.step() else {
                    isAtEnd = true
                    break
                }
                reports.append(try ClusterReport(rows))
            }
            count += reports.count
            try excerpt.fill { try add(reports, withStacks: withStacks) }
        }
        return count
    }

    /// Deletes the reports. The rows that they refer to stay, with their numbers.
    func forget() throws {
        try excerpt.fill {
            try excerpt.connection.execute("delete from report; delete from report_day")
        }
    }

    /// The process and the name of a loop that was fetched.
    func loop(_ hash: Int64) throws -> (run: ProcessRun, name: String) {
        guard let loop = loops[hash] else {
            throw ClickHouseError.badAnswer(
                store: server.name, detail: "a report is of a loop that is missing")
        }
        return (loop.run, loop.name)
    }

    private func add(_ reports: [ClusterReport], withStacks: Bool) throws {
        let loops = Set(reports.map(\.row.loop))
        let signatures = Set(reports.compactMap(\.row.signature))
        let evidence = Set(reports.compactMap(\.row.evidence?.id))
        let own = Set(reports.flatMap(\.stacks))
        // For a few reports all queries are sent at once.
        let areFew = reports.count <= Self.fewReports
        if areFew {
            server.ask(
                ahead: questions(ofLoops: loops) + questions(ofGroups: signatures)
                    + (withStacks
                        ? questions(ofEvidence: evidence) + questions(ofStacks: own)
                            + questions(ofImagesOfLoops: loops) : []),
                keepingOthers: true)
        }
        try fetchLoops(loops)
        try fetchGroups(signatures)
        for report in reports {
            for stack in report.stacks { _ = stacks.number(of: stack) }
        }
        if withStacks {
            try fetchEvidence(evidence)
            try fetchStacks(own, isAskedAhead: areFew)
            try fetchImages(ofLoops: loops)
        }
        for report in reports { try add(report) }
    }

    private static let fewReports = 200

    private func add(_ report: ClusterReport) throws {
        func number(_ index: Int64?) -> Int64? { index.flatMap { stacks[report.stacks[Int($0)]] } }
        var row = report.row
        guard let loop = excerpt.loops[row.loop] else {
            throw ClickHouseError.badAnswer(
                store: server.name, detail: "report \(row.id) is of a loop that is missing")
        }
        row.loop = loop
        row.mode = try excerpt.label(report.mode)
        row.activity = try report.activity.map(excerpt.label)
        row.signature = row.signature.flatMap { excerpt.signatures[$0] }
        row.evidence?.id = report.row.evidence.map { evidence.number(of: $0.id).0 } ?? 0
        for index in row.samples.indices {
            row.samples[index].stack = number(row.samples[index].stack)
        }
        for index in row.threads.indices {
            row.threads[index].stack = number(row.threads[index].stack)
        }
        let source = try excerpt.source(report.source)
        try row.bind(to: addReport, source: source)
        try addReport.finish()
        try addDay.run(row.start_us.day, source, row.seq, row.seq)
    }

    // MARK: The rows that reports refer to

    /// The hashes of what is not here yet, in parts.
    private func missingLoops(_ hashes: Set<Int64>) -> [[Int64]] {
        hashes.filter { !excerpt.loops.contains($0) }.sorted().parts()
    }

    private func questions(ofLoops hashes: Set<Int64>) -> [ClickHouseQuery] {
        missingLoops(hashes).flatMap { LoopQuestions(where: "hash in \(list: $0)").all }
    }

    /// - Parameter hashes: Nil for all that there are.
    func fetchLoops(_ hashes: Set<Int64>?) throws {
        guard let hashes else { return try fetchLoops(LoopQuestions(where: "1")) }
        for part in missingLoops(hashes) {
            try fetchLoops(LoopQuestions(where: "hash in \(list: part)"))
        }
    }

    /// Fetches loops, but not whether they recorded their watched time.
    ///
    /// - Parameter question: Selects the hashes.
    func fetchLoops(in question: ClickHouseQuery) throws {
        try fetchLoops(LoopQuestions(in: question))
    }

    private struct LoopQuestions {
        let ofRuns, ofLoops: ClickHouseQuery
        let ofWatched: ClickHouseQuery?
        var all: [ClickHouseQuery] { [ofRuns, ofLoops] + (ofWatched.map { [$0] } ?? []) }

        init(in question: ClickHouseQuery) {
            self.init(where: "hash in (\(question))", withWatched: false)
        }

        init(where condition: ClickHouseQuery, withWatched: Bool = true) {
            ofRuns = """
                select \(ProcessRun.clusterColumns)
                from process_run where uuid in (select run from loop where \(condition))
                """
            ofLoops = """
                select distinct run, hash, name, threshold_ns from loop where \(condition)
                order by hash
                """
            ofWatched =
                withWatched
                ? """
                select loop, source from watched_loop
                where loop in (select hash from loop where \(condition))
                """ : nil
        }
    }

    private func fetchLoops(_ questions: LoopQuestions) throws {
        server.ask(ahead: questions.all, keepingOthers: true)
        var runs: [UniqueID: ProcessRun] = [:]
        var rows = try server.rows(questions.ofRuns, columnCount: ProcessRun.clusterColumnCount)
        while try rows.step() {
            let run = try ProcessRun(rows)
            runs[run.id] = run
        }
        rows = try server.rows(questions.ofLoops, columnCount: 4)
        while try rows.step() {
            guard let run = runs[try rows.uniqueID()] else { throw rows.bad("a known run") }
            let (hash, name): (Int64, String) = (try rows.integer(), try rows.text())
            let threshold: Int64 = try rows.integer()
            loops[hash] = (run, name, threshold)
            _ = try excerpt.loop(
                hash, run: excerpt.run(run), name: name, threshold_ns: threshold)
        }
        guard let ofWatched = questions.ofWatched else { return }
        rows = try server.rows(ofWatched, columnCount: 2)
        while try rows.step() {
            let (loop, source): (Int64, UniqueID) = (try rows.integer(), try rows.uniqueID())
            guard let loop = excerpt.loops[loop] else { continue }
            try addWatched.run(excerpt.source(source), loop)
        }
    }

    private func missingGroups(_ keys: Set<Int64>) -> [Int64] {
        keys.filter { $0 != 0 && !excerpt.signatures.contains($0) }.sorted()
    }

    private func questions(ofGroups keys: Set<Int64>) -> [ClickHouseQuery] {
        GroupSource.questions(missingGroups(keys))
    }

    private func fetchGroups(_ keys: Set<Int64>) throws {
        let missing = missingGroups(keys)
        guard !missing.isEmpty else { return }
        let groups = try GroupSource(server: server).groups(missing)
        for (key, group) in groups.sorted(by: { $0.key < $1.key }) {
            _ = try excerpt.signature(key, group)
        }
    }

    private func missingEvidence(_ hashes: Set<Int64>) -> [[Int64]] {
        hashes.subtracting(wholeEvidence).sorted().parts()
    }

    private func questions(ofEvidence hashes: Set<Int64>) -> [ClickHouseQuery] {
        missingEvidence(hashes).map(Self.question(ofEvidence:))
    }

    private static func question(ofEvidence hashes: [Int64]) -> ClickHouseQuery {
        """
        select evidence, position, name, format, first_number from evidence_fact
        where evidence in \(list: hashes)
        """
    }

    private func fetchEvidence(_ hashes: Set<Int64>) throws {
        let addRow = try excerpt.connection.prepare(
            "insert or ignore into evidence (id, hash) values (?, ?)")
        let addFact = try excerpt.connection.prepare(
            """
            insert or ignore into evidence_fact (evidence, position, name, format, first_number)
            values (?, ?, ?, ?, ?)
            """)
        for part in missingEvidence(hashes) {
            var rows = try server.rows(Self.question(ofEvidence: part), columnCount: 5)
            while try rows.step() {
                let hash: Int64 = try rows.integer()
                let (id, isNew) = evidence.number(of: hash)
                if isNew { try addRow.run(id, hash) }
                try addFact.run(
                    id, rows.integer(), rows.text(), rows.text(), rows.integer()
                )
            }
            wholeEvidence.formUnion(part)
        }
    }
}
